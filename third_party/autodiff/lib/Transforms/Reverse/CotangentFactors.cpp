//===- CotangentFactors.cpp - What cotangents are multiplied by -----------===//
//
// The activation behind a product is computed in float32, and so is its
// derivative. But in dz = dy · f'(z), where dy is rounded to bfloat16, f'(z)
// need not be more exact than dy, where gradients are rounded to bfloat16, too.
// If the forward saves f'(z) in bfloat16 instead of z, it takes half as many
// bytes, and the backward has no exponential.
//
//===----------------------------------------------------------------------===//
#include "CotangentFactors.h"
#include "autodiff/Analysis/Costs.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/StoredCopies.h"
#include "autodiff/Builders/ProgramBuffers.h"
#include "autodiff/Builders/Slice.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// The cotangent in which a value is linear.
struct Linearity {
  Value cotangent;
  /// Whether it is set to zero where the cotangent is zero, since the factor
  /// may not be finite there.
  bool isGuarded = false;

  explicit operator bool() const { return bool(cotangent); }
};

/// Values in the outermost block of a backward that are linear in one
/// cotangent.
class LinearValues {
public:
  explicit LinearValues(Block &body);

  /// Linear values that have other uses.
  SmallVector<Value> collectEnds() const;
  /// Whether the forward's `value` is only used in factors.
  bool isOnlyFactor(Value value) const;
  Linearity of(Value value) const { return linear.lookup(value); }

private:
  Linearity match(Operation *op) const;
  Linearity matchSum(Value a, Value b) const;
  Linearity matchSelect(arith::SelectOp op) const;
  Value matchCondition(Operation *op) const;
  bool isPrimal(Value value) const {
    return !adjoint.contains(value.getDefiningOp());
  }
  bool isInside(Operation *op) const;

  llvm::DenseSet<Operation *> adjoint;
  llvm::MapVector<Value, Linearity> linear;
  /// Conditions that test whether a linear value is zero. With a cotangent of
  /// one, they have the same value, unless the cotangent is zero.
  llvm::DenseMap<Value, Value> conditions;
};

/// Emits values of the backward in the forward.
class Transplant {
public:
  Transplant(triton::FuncOp backward, triton::FuncOp forward);

  /// Adds `value`, for a `cotangent` of one; false if the forward cannot
  /// compute it.
  bool add(Value value, Value cotangent);
  /// The cost of all computations, in bytes.
  double bytesOfArithmetic() const;
  /// Emits the computations; returns where a builder may continue.
  Operation *emit(IRMapping &map);

private:
  bool collect(Value value) {
    return collectSlice(value, slice, [&](Value each) { return ask(each); });
  }
  Elsewhere ask(Value value);
  /// What the forward has for an operation of the backward; null if nothing.
  Operation *findSource(Operation *op) const;

  triton::FuncOp backward, forward;
  /// Residuals and loads in the forward's outermost block, by number.
  llvm::DenseMap<int64_t, Operation *> residuals, loads;
  llvm::MapVector<Operation *, Operation *> sources;
  SetVector<Operation *> slice;
  llvm::SetVector<Value> ones;
};
} // namespace

//===----------------------------------------------------------------------===//
// What is linear in a cotangent
//===----------------------------------------------------------------------===//

static bool isZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat());
}

LinearValues::LinearValues(Block &body) : adjoint(findAdjoint(body)) {
  for (Operation &op : body)
    if (auto upstream = dyn_cast<UpstreamOp>(op)) {
      if (Value cotangent = upstream.getResult())
        linear[cotangent] = {cotangent};
    } else if (adjoint.contains(&op)) {
      if (Linearity found = match(&op))
        linear[op.getResult(0)] = found;
      else if (Value cotangent = matchCondition(&op))
        conditions[op.getResult(0)] = cotangent;
    }
}

/// A sum, or a selection between two values.
Linearity LinearValues::matchSum(Value a, Value b) const {
  Linearity ofA = of(a), ofB = of(b);
  bool isA = ofA && isZero(b), isB = ofB && isZero(a);
  if (isA || isB)
    return isA ? ofA : ofB;
  if (ofA.cotangent != ofB.cotangent &&
      !(ofA && ofB && mutation::isMade("factors:two cotangents")))
    return {};
  return {ofA.cotangent, ofA.isGuarded || ofB.isGuarded};
}

Linearity LinearValues::matchSelect(arith::SelectOp op) const {
  Linearity found = matchSum(op.getTrueValue(), op.getFalseValue());
  Value asked = conditions.lookup(op.getCondition());
  if (!isPrimal(op.getCondition()) && asked != found.cotangent)
    return {};
  found.isGuarded |= bool(asked);
  return found;
}

Linearity LinearValues::match(Operation *op) const {
  return TypeSwitch<Operation *, Linearity>(op)
      .Case([&](arith::MulFOp product) {
        Value a = product.getLhs(), b = product.getRhs();
        return isPrimal(b) ? of(a) : isPrimal(a) ? of(b) : Linearity();
      })
      .Case([&](arith::DivFOp quotient) {
        return isPrimal(quotient.getRhs()) ? of(quotient.getLhs())
                                           : Linearity();
      })
      .Case([&](arith::NegFOp op) { return of(op.getOperand()); })
      .Case<arith::AddFOp, arith::SubFOp>(
          [&](auto sum) { return matchSum(sum.getLhs(), sum.getRhs()); })
      .Case([&](arith::SelectOp select) { return matchSelect(select); })
      .Default(Linearity());
}

/// The cotangent of such a condition; null for others.
Value LinearValues::matchCondition(Operation *op) const {
  if (auto test = dyn_cast<arith::CmpFOp>(op))
    return test.getPredicate() == arith::CmpFPredicate::OEQ &&
                   isZero(test.getRhs())
               ? of(test.getLhs()).cotangent
               : Value();
  if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op))
    return {};
  Value cotangent;
  for (Value operand : op->getOperands()) {
    Value asked = conditions.lookup(operand);
    if (isPrimal(operand))
      continue;
    if (!asked || (cotangent && asked != cotangent))
      return {};
    cotangent = asked;
  }
  return cotangent;
}

/// Whether `op` is not needed any more if factors are used.
bool LinearValues::isInside(Operation *op) const {
  if (op->getNumResults() != 1)
    return false;
  Value result = op->getResult(0);
  return linear.contains(result) ||
         (conditions.contains(result) &&
          llvm::all_of(op->getUsers(),
                       [&](Operation *user) { return isInside(user); }));
}

SmallVector<Value> LinearValues::collectEnds() const {
  SmallVector<Value> ends;
  for (auto [value, linearity] : linear)
    if (value != linearity.cotangent &&
        !llvm::all_of(value.getUsers(),
                      [&](Operation *user) { return isInside(user); }))
      ends.push_back(value);
  return ends;
}

bool LinearValues::isOnlyFactor(Value value) const {
  llvm::SetVector<Value> derived;
  derived.insert(value);
  for (unsigned next = 0; next < derived.size(); ++next)
    for (Operation *user : derived[next].getUsers()) {
      if (user->getBlock() != value.getParentBlock())
        return false;
      if (!adjoint.contains(user))
        derived.insert_range(user->getResults());
      else if (isa<UpstreamOp>(user) || !isInside(user))
        return false; // or it says where a cotangent is
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Where it is computed
//===----------------------------------------------------------------------===//

static std::optional<int64_t> getSite(Operation *op) {
  auto site = op->getAttrOfType<IntegerAttr>(kSiteAttr);
  return isa<triton::LoadOp>(op) && site ? std::optional(site.getInt())
                                         : std::nullopt;
}

Transplant::Transplant(triton::FuncOp backward, triton::FuncOp forward)
    : backward(backward), forward(forward) {
  for (Operation &op : forward.getBody().front())
    if (auto residual = dyn_cast<ResidualOp>(op))
      residuals[residual.getId()] = residual;
    else if (std::optional<int64_t> site = getSite(&op))
      loads[*site] = &op;
}

Operation *Transplant::findSource(Operation *op) const {
  if (auto residual = dyn_cast<ResidualOp>(op))
    return residuals.lookup(residual.getId());
  std::optional<int64_t> site = getSite(op);
  return site ? loads.lookup(*site) : nullptr;
}

bool Transplant::add(Value value, Value cotangent) {
  ones.insert(cotangent);
  return collect(value);
}

/// What is there already, and what may not be. (What was recorded of memory is
/// for the backward to read.)
Elsewhere Transplant::ask(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || sources.contains(op) || ones.contains(value))
    return Elsewhere::Known;
  Operation *source = findSource(op);
  if (!source)
    return op->getNumRegions() == 0 && isMemoryEffectFree(op)
               ? Elsewhere::Computed
               : Elsewhere::Never;
  sources[op] = source;
  if (source->getResultTypes() != op->getResultTypes())
    return Elsewhere::Never;
  if (!op->hasAttr(kNarrowedAttr) ||
      mutation::isMade("factors:of all that is read"))
    return Elsewhere::Known;
  auto load = cast<triton::LoadOp>(op);
  if (!collect(load.getMask()) || !collect(load.getOther()))
    return Elsewhere::Never;
  slice.insert(op);
  return Elsewhere::Known;
}

double Transplant::bytesOfArithmetic() const {
  double bytes = 0;
  for (Operation *op : slice)
    bytes += mlir::autodiff::bytesOfArithmetic(op);
  return bytes;
}

/// Masks a value that the forward has loaded where the copy does not load it.
static void narrow(OpBuilder &b, triton::LoadOp load, IRMapping &map) {
  Value mask = map.lookupOrDefault(load.getMask());
  map.map(load.getResult(),
          arith::SelectOp::create(b, load.getLoc(), mask,
                                  map.lookup(load.getResult()),
                                  map.lookupOrDefault(load.getOther())));
}

Operation *Transplant::emit(IRMapping &map) {
  map.map(backward.getArguments().take_front(forward.getNumArguments()),
          forward.getArguments());
  Operation *last = sources.front().second;
  for (auto [op, source] : sources) {
    map.map(op->getResult(0), source->getResult(0));
    if (last->isBeforeInBlock(source))
      last = source;
  }
  OpBuilder b(forward.getContext());
  b.setInsertionPointAfter(last);
  for (Value cotangent : ones)
    map.map(cotangent,
            constantOf(b, cotangent.getLoc(), cotangent.getType(), 1.0));
  for (Operation *op : slice)
    if (sources.contains(op))
      narrow(b, cast<triton::LoadOp>(op), map);
    else
      b.clone(*op, map);
  return &*b.getInsertionPoint();
}

//===----------------------------------------------------------------------===//
// What is saved
//===----------------------------------------------------------------------===//

/// Whether a cotangent is loaded in bfloat16 and nothing is added to it.
/// (bfloat16 has the range of the float32 in which it is computed; half
/// precision does not.)
static bool isRounded(UpstreamOp op) {
  WalkResult walk = op->getBlock()->walk([&](AccumulateOp other) {
    return other.getArgument() == op.getArgument() ? WalkResult::interrupt()
                                                   : WalkResult::advance();
  });
  return !walk.wasInterrupted() && getPointee(op.getPtr().getType()).isBF16() &&
         getElementTypeOrSelf(op.getResult().getType()).isF32();
}

/// The type in which the factor of `product` is stored: bfloat16 if all
/// gradients are rounded to that.
static Type getStored(triton::FuncOp backward, Value product, Value cotangent) {
  Type type = product.getType(), half = BFloat16Type::get(type.getContext());
  bool isFinal = areAllGradients(backward, half) ||
                 mutation::isMade("factors:rounded for any gradient");
  return isFinal && isRounded(cotangent.getDefiningOp<UpstreamOp>())
             ? withElementType(type, half)
             : type;
}

/// The values of `ends` that depend on some of these residuals.
static SmallVector<Value> findDependent(ArrayRef<Value> ends,
                                        ArrayRef<ResidualOp> residuals) {
  SetVector<Operation *> dependent;
  for (ResidualOp residual : residuals)
    getForwardSlice(residual.getResult(), &dependent);
  auto isDependent = [&](Value end) {
    return dependent.contains(end.getDefiningOp());
  };
  return llvm::filter_to_vector(ends, isDependent);
}

/// t · factor, in place of `product`.
static Value multiply(OpBuilder &b, Value product, Linearity linearity,
                      Value factor) {
  Location loc = product.getLoc();
  Tile t(b, loc, linearity.cotangent);
  Type element = getElementTypeOrSelf(product.getType());
  Tile scaled = t * t.like(castFloat(b, loc, factor, element));
  if (!linearity.isGuarded || mutation::isMade("factors:not guarded"))
    return scaled;
  return unlessZero(t, scaled, factor);
}

void mlir::autodiff::saveFactors(triton::FuncOp backward,
                                 triton::FuncOp forward,
                                 SmallVectorImpl<ResidualOp> &saved) {
  LinearValues linear(backward.getBody().front());
  auto isDropped = [&](ResidualOp residual) {
    return linear.isOnlyFactor(residual.getResult());
  };
  SmallVector<ResidualOp> dropped = llvm::filter_to_vector(saved, isDropped);
  SmallVector<Value> products = findDependent(linear.collectEnds(), dropped);
  double bytes = 0;
  for (ResidualOp residual : dropped)
    bytes += bytesOf(residual.getType());
  Transplant transplant(backward, forward);
  SmallVector<Type> stored;
  // A factor is not worth it for computations that take no longer than an
  // exponential.
  double least = Target::of(backward).getBytesOfSpecial();
  for (Value product : products) {
    Value cotangent = linear.of(product).cotangent;
    stored.push_back(getStored(backward, product, cotangent));
    bytes -= bytesOf(stored.back()) + least * elementsOf(stored.back());
    if (!transplant.add(product, cotangent))
      return;
  }
  if (products.empty() || bytes + transplant.bytesOfArithmetic() <= 0)
    return;
  IRMapping map;
  OpBuilder atSave(transplant.emit(map)), atLoad(backward.getContext());
  for (auto [index, product] : llvm::enumerate(products)) {
    Value computed = castFloat(atSave, product.getLoc(), map.lookup(product),
                               getElementTypeOrSelf(stored[index]));
    atLoad.setInsertionPointAfterValue(product);
    Value factor = saveForBackward(atSave, computed, atLoad,
                                   "factor" + std::to_string(index));
    product.replaceAllUsesWith(
        multiply(atLoad, product, linear.of(product), factor));
  }
  llvm::erase_if(saved, [&](ResidualOp residual) {
    return llvm::is_contained(dropped, residual);
  });
}
