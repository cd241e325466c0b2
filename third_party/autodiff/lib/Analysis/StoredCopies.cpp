//===- StoredCopies.cpp - What memory holds of a computed value -----------===//
#include "autodiff/Analysis/StoredCopies.h"

#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MathFunctions.h"
#include "autodiff/Analysis/Moves.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/WeightedMeans.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::autodiff;

//===----------------------------------------------------------------------===//
// What a type holds
//===----------------------------------------------------------------------===//

/// Whether the type `to` has every number of the type `from`.
static bool holdsAll(Type to, Type from) {
  if (to == from)
    return true;
  auto narrow = dyn_cast<FloatType>(from), wide = dyn_cast<FloatType>(to);
  return narrow && wide &&
         APFloat::isRepresentableBy(narrow.getFloatSemantics(),
                                    wide.getFloatSemantics());
}

static bool isExactConstant(Operation *op, Type element) {
  APFloat number(0.0);
  auto type = dyn_cast<FloatType>(element);
  if (!type || !matchPattern(op, m_ConstantFloat(&number)))
    return false;
  bool losesInfo;
  number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return !losesInfo;
}

/// Whether `op` gives one of its operands, or that without its sign.
static bool picks(Operation *op) {
  if (auto reduce = dyn_cast<triton::ReduceOp>(op)) {
    Operation *combiner = reduce.getSingleCombiner();
    return combiner && picks(combiner);
  }
  return onlyMoves(op) ||
         isa<ResidualOp, arith::ExtFOp, arith::TruncFOp, triton::FpToFpOp,
             arith::NegFOp, math::AbsFOp, arith::SelectOp, arith::MaximumFOp,
             arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp>(op);
}

bool mlir::autodiff::isExactIn(Value value, Type element) {
  llvm::SetVector<Value> values;
  values.insert(value);
  for (unsigned next = 0; next < values.size(); ++next) {
    Value each = values[next];
    if (holdsAll(element, getElementTypeOrSelf(each)))
      continue;
    if (auto handed = findHandedOn(each); handed && !handed->empty()) {
      values.insert_range(*handed);
      continue;
    }
    Operation *op = each.getDefiningOp();
    if (op && isExactConstant(op, element))
      continue;
    if (!op || !picks(op))
      return false;
    for (Value operand : op->getOperands())
      if (isa<FloatType>(getElementTypeOrSelf(operand)))
        values.insert(operand);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

bool mlir::autodiff::areAllGradients(triton::FuncOp backward, Type element) {
  llvm::DenseSet<unsigned> read;
  backward.walk([&](UpstreamOp op) { read.insert(op.getArgument()); });
  WalkResult walk = backward.walk([&](AccumulateOp op) {
    bool isFinal = !read.contains(op.getArgument());
    return isFinal && getPointee(op.getPtr().getType()) == element
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return !walk.wasInterrupted();
}

/// The same of a backward that is not derived yet.
static bool areAllGradients(triton::FuncOp kernel, const Activity &activity,
                            Type element) {
  return llvm::all_of(kernel.getArguments(), [&](BlockArgument argument) {
    return !activity.isWanted(argument.getArgNumber()) ||
           getPointee(argument.getType()) == element;
  });
}

/// The values of a backward that depend on a cotangent for which `isMeant`
/// holds.
static llvm::DenseSet<Value>
findCotangents(triton::FuncOp backward,
               llvm::function_ref<bool(UpstreamOp)> isMeant) {
  llvm::SetVector<Value> values;
  backward.walk([&](UpstreamOp op) {
    if (isMeant(op))
      values.insert_range(op->getResults());
  });
  for (unsigned next = 0; next < values.size(); ++next) {
    Value value = values[next];
    auto flow = [&](Value from, Value to) {
      if (from == value)
        values.insert(to);
    };
    for (Operation *user : value.getUsers())
      if (!followFlow(isa<scf::YieldOp>(user) ? user->getParentOp() : user,
                      flow))
        values.insert_range(user->getResults());
    // From an argument of a loop to its result.
    if (auto argument = dyn_cast<BlockArgument>(value))
      followFlow(argument.getOwner()->getParentOp(), flow);
  }
  return {values.begin(), values.end()};
}

//===----------------------------------------------------------------------===//
// What a derivative does with a copy
//===----------------------------------------------------------------------===//

namespace {
/// How a value depends on a copy that is rounded.
struct Trace {
  /// Whether it is the copy itself, its elements moved.
  bool isSame = false;
  /// Whether it is a sum: it is not only a multiple of the copy.
  bool isSum = false;
  /// Whether one element of the copy is in several of its elements.
  bool isSpread = false;
  /// Whether it is carried by a loop, whose iterations may multiply it.
  bool isCarried = false;
  /// Whether its derivative by the copy depends on the copy.
  bool isBent = false;

  bool operator==(const Trace &other) const {
    return isSame == other.isSame && isSum == other.isSum &&
           isSpread == other.isSpread && isCarried == other.isCarried &&
           isBent == other.isBent;
  }
  Trace join(const Trace &other) const {
    return {isSame && other.isSame, isSum || other.isSum,
            isSpread || other.isSpread, isCarried || other.isCarried,
            isBent || other.isBent};
  }
};
} // namespace

namespace mlir::autodiff {
/// Follows a copy to all its uses, in a backward or, for a backward that is not
/// derived yet, in the kernel: the adjoint of a product uses its factors, that
/// of a sum nothing.
class CopyUses {
public:
  /// How far a copy may differ: not at all; by a rounding, as a factor; by a
  /// rounding, as a factor of the gradient of this very output, which is no
  /// `others`.
  enum class Rounding { None, OfFactors, OfOwnFactors };

  CopyUses(const StoredCopies &copies, Value copy, Type stored,
           Rounding rounding, llvm::DenseSet<Value> others = {})
      : copies(copies), copy(copy), stored(stored), rounding(rounding),
        others(std::move(others)) {}

  /// Whether no use needs more than the copy is.
  bool areRight();

private:
  bool visit(OpOperand &use);
  bool yield(OpOperand &use);
  bool hand(Value value, Operation *carrier);
  bool multiply(OpOperand &use);
  bool sum(Operation *op, Trace trace);
  bool compareWithZero(Operation *op, Trace trace);
  bool pass(Operation *op, Trace trace);

  void note(Value value, Trace trace);
  bool isDerived() const { return !copies.activity; }
  bool isCotangent(Value value) const {
    return copies.cotangents.contains(value);
  }
  bool isTraced(Value value) const { return traces.contains(value); }
  bool maybeFactor(Trace trace) const {
    bool isMultiple =
        !trace.isSum || mutation::isMade("copies:differences as factors");
    return rounding != Rounding::None && isMultiple && !trace.isSpread;
  }
  bool isOwnFactor(Operation *op, Trace trace, Value cotangent) const {
    return isa<arith::MulFOp>(op) && !trace.isBent &&
           (!others.contains(cotangent) ||
            mutation::isMade("copies:factors of other gradients"));
  }

  const StoredCopies &copies;
  Value copy;
  Type stored;
  Rounding rounding;
  llvm::DenseSet<Value> others;
  llvm::MapVector<Value, Trace> traces;
  SmallVector<Value> pending;
};
} // namespace mlir::autodiff

/// Notes how `value` depends on the copy.
void CopyUses::note(Value value, Trace trace) {
  auto [it, isNew] = traces.insert({value, trace});
  Trace joined = it->second.join(trace);
  if (!isNew && joined == it->second)
    return;
  it->second = joined;
  pending.push_back(value);
}

bool CopyUses::pass(Operation *op, Trace trace) {
  for (Value result : op->getResults())
    note(result, trace);
  return true;
}

bool CopyUses::sum(Operation *op, Trace trace) {
  trace.isSame = false;
  trace.isSum = true;
  return pass(op, trace);
}

/// From what a loop or branch is given, or yields, to what it carries.
bool CopyUses::hand(Value value, Operation *carrier) {
  if (isa<scf::WhileOp>(carrier))
    return false;
  Trace trace = traces.lookup(value);
  bool isLoop = isa<scf::ForOp>(carrier);
  // A multiple of the copy might be multiplied in each iteration.
  if (isLoop && !isCotangent(value) && (!trace.isSum || trace.isBent))
    return false;
  trace.isSame = false;
  trace.isCarried |= isLoop;
  followFlow(carrier, [&](Value from, Value to) {
    if (from == value)
      note(to, trace);
  });
  return true;
}

/// The backward has recorded what the loop of the copy carries: each iteration
/// starts from there, and its copy is another one.
bool CopyUses::yield(OpOperand &use) {
  Operation *op = use.getOwner();
  auto argument = dyn_cast<BlockArgument>(copy);
  if (!argument || argument.getOwner() != op->getBlock())
    return hand(use.get(), op->getParentOp());
  Trace trace = traces.lookup(use.get());
  bool isNext = use.getOperandNumber() + 1 == argument.getArgNumber();
  return (isNext || trace.isSum) && !trace.isBent;
}

/// Whether `op` is a sum of its operands, or of one operand's elements.
static bool adds(Operation *op) {
  if (auto reduce = dyn_cast<triton::ReduceOp>(op))
    return isa_and_present<arith::AddFOp>(reduce.getSingleCombiner());
  return isa<arith::AddFOp, arith::SubFOp>(op);
}

/// A comparison with zero is right for a multiple of a value.
bool CopyUses::compareWithZero(Operation *op, Trace trace) {
  return rounding == Rounding::OfFactors && !trace.isSum &&
         llvm::any_of(op->getOperands(), [](Value operand) {
           return matchPattern(operand, m_AnyZeroFloat());
         });
}

/// A product, quotient or root.
bool CopyUses::multiply(OpOperand &use) {
  Operation *op = use.getOwner();
  Trace trace = traces.lookup(use.get());
  trace.isSame = false;
  bool isDivisor = isa<arith::DivFOp, triton::PreciseDivFOp>(op) &&
                   use.getOperandNumber() == 1;
  bool isRoot = op->getNumOperands() == 1;
  Value other = isRoot ? use.get() : op->getOperand(1 - use.getOperandNumber());
  Trace ofOther = traces.lookup(other);
  bool isProduct = isa<triton::DotOp>(op);
  auto result = [&](Trace trace) {
    return isProduct ? sum(op, trace) : pass(op, trace);
  };
  if (isCotangent(op->getResult(0))) {
    bool isFactor = !isCotangent(use.get());
    bool mayGrow =
        isFactor ? ofOther.isCarried : trace.isCarried && isTraced(other);
    if (mayGrow || (isFactor && !maybeFactor(trace)))
      return false;
    if (isFactor && rounding == Rounding::OfOwnFactors &&
        !isOwnFactor(op, trace, other))
      return false;
    return isFactor ? result(Trace()) : result(trace);
  }
  // The adjoint is multiplied by the operands, or divided by them.
  bool isNeeded = isDerived()
                      ? trace.isSum && (isDivisor || isRoot)
                      : isDivisor || isRoot || copies.activity->isActive(other);
  if (isNeeded && !maybeFactor(trace))
    return false;
  trace.isBent |= isDivisor || isRoot || isTraced(other);
  return result(trace);
}

bool CopyUses::visit(OpOperand &use) {
  Operation *op = use.getOwner();
  Value value = use.get();
  Trace trace = traces.lookup(value);
  if (isa<scf::YieldOp>(op))
    return yield(use);
  if (isa<LoopLikeOpInterface>(op))
    return hand(value, op);
  if (isa<triton::StoreOp>(op))
    return !isDerived() && use.getOperandNumber() == 1;
  if (auto add = dyn_cast<AccumulateOp>(op))
    return add.getValue() == value && isCotangent(value);
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    trace.isSame = false;
    return select.getCondition() != value && pass(op, trace);
  }
  // Rounded again, it is the same.
  if (trace.isSame && isa<arith::TruncFOp, triton::FpToFpOp>(op) &&
      getElementTypeOrSelf(op->getResult(0)) == stored)
    return true;
  if (isa<arith::CmpFOp>(op))
    return compareWithZero(op, trace);
  if (auto dot = dyn_cast<triton::DotOp>(op))
    return use.getOperandNumber() < 2 ? multiply(use) : sum(op, trace);
  if (isa<arith::MulFOp, arith::DivFOp, triton::PreciseDivFOp, math::SqrtOp,
          math::RsqrtOp, triton::PreciseSqrtOp>(op))
    return multiply(use);
  if (adds(op))
    return sum(op, trace);
  if (isa<triton::BroadcastOp, triton::SplatOp>(op) && !isCotangent(value))
    trace.isSpread = true;
  if (isa<ResidualOp, arith::ExtFOp>(op) || onlyMoves(op))
    return pass(op, trace);
  trace.isSame = false;
  return isa<arith::TruncFOp, arith::NegFOp, math::AbsFOp>(op) &&
         pass(op, trace);
}

bool CopyUses::areRight() {
  traces[copy].isSame = true;
  pending.push_back(copy);
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    for (OpOperand &use : value.getUses())
      if (!visit(use))
        return false;
    // A loop has its last iteration's.
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && value != copy &&
        !hand(value, argument.getOwner()->getParentOp()))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Which copies may stand in
//===----------------------------------------------------------------------===//

StoredCopies::StoredCopies(triton::FuncOp backward)
    : kernel(backward),
      cotangents(findCotangents(backward, [](UpstreamOp) { return true; })) {}

StoredCopies::StoredCopies(triton::FuncOp kernel, const Activity &activity)
    : kernel(kernel), activity(&activity) {}

/// Whether gradients are rounded to the type of the copy.
bool StoredCopies::isRoundedAnyway(Type stored) const {
  return activity ? ::areAllGradients(kernel, *activity, stored)
                  : areAllGradients(kernel, stored);
}

/// Whether PyTorch's derivative of this function reads its output.
static bool readsItsResult(Operation *op) {
  static constexpr llvm::StringLiteral kNames[] = {
      "exp", "exp2", "expm1", "rsqrt", "sqrt", "tan", "tanh"};
  auto isKnown = [](StringRef name) {
    return llvm::is_contained(kNames, name);
  };
  return op && isKnown(getFunctionName(op, isKnown));
}

/// Whether `value` is only stored, rounded to `stored`.
static bool isOnlyStored(Value value, Type stored) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<triton::StoreOp>(user))
      return true;
    bool isRounded = isa<arith::TruncFOp>(user) &&
                     getElementTypeOrSelf(user->getResult(0)) == stored;
    return isa<ResidualOp>(user)
               ? isOnlyStored(user->getResult(0), stored)
               : isRounded && llvm::all_of(user->getUsers(),
                                           llvm::IsaPred<triton::StoreOp>);
  });
}

/// Whether a store keeps a mean, whose copy only multiplies the gradient of
/// what is stored there.
bool StoredCopies::isFactorOfOwn(Value computed, Value used,
                                 triton::StoreOp store) const {
  Type stored = getElementTypeOrSelf(store.getValue());
  if (activity || (!isMeanOf(computed, stored) &&
                   !mutation::isMade("copies:any factors of their own")))
    return false;
  Attribute site = store->getAttr(kSiteAttr);
  llvm::DenseSet<Value> others = findCotangents(
      kernel, [&](UpstreamOp op) { return op.getSiteAttr() != site; });
  return CopyUses(*this, used, stored, CopyUses::Rounding::OfOwnFactors, others)
      .areRight();
}

bool StoredCopies::mayStandIn(Value computed, Value used,
                              triton::StoreOp store) const {
  using Rounding = CopyUses::Rounding;
  Type stored = getElementTypeOrSelf(store.getValue());
  if (isExactIn(computed, stored) ||
      mutation::isMade("copies:rounded as if they were not"))
    return true;
  bool isTile = elementsOf(computed.getType()) > 1;
  bool isRounded = isTile && isRoundedAnyway(stored);
  bool isHalf = stored.isBF16() || stored.isF16();
  if (isRounded && isHalf && readsItsResult(computed.getDefiningOp()) &&
      (isOnlyStored(computed, stored) ||
       mutation::isMade("copies:results that have other uses")))
    return true;
  if (isRounded && isHalf && isFactorOfOwn(computed, used, store))
    return true;
  bool hasRange =
      stored.isBF16() || mutation::isMade("copies:half precision as factors");
  return CopyUses(*this, used, stored,
                  isRounded && hasRange ? Rounding::OfFactors : Rounding::None)
      .areRight();
}
