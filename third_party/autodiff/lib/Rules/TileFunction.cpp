//===- TileFunction.cpp - Scalar code as a function of tiles --------------===//
//
// A branch becomes the computation of both sides and a selection. For elements
// that do not take a side, it computes with ones, so that a pole there cannot
// turn a zero cotangent into NaN.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Rules/TileFunction.h"

#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/UserName.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace mlir::autodiff;

//===----------------------------------------------------------------------===//
// Lifting
//===----------------------------------------------------------------------===//

namespace {
class Lifting {
public:
  Lifting(OpBuilder &builder, std::optional<ArrayRef<int64_t>> shape)
      : b(builder), shape(shape) {}

  /// Appends the block's code; its values are in `values` afterwards.
  LogicalResult lift(Block &block, IRMapping &values);

  Type typeOf(Type scalar) const {
    return shape ? RankedTensorType::get(*shape, scalar) : scalar;
  }

private:
  LogicalResult liftIf(scf::IfOp op, IRMapping &values);
  FailureOr<SmallVector<Value>> liftSide(Region &side, Value taken,
                                         const IRMapping &values);

  OpBuilder &b;
  std::optional<ArrayRef<int64_t>> shape;
};
} // namespace

LogicalResult Lifting::lift(Block &block, IRMapping &values) {
  for (Operation &op : block.without_terminator()) {
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (failed(liftIf(branch, values)))
        return failure();
      continue;
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      TypedAttr number = constant.getValue();
      if (auto type = dyn_cast<RankedTensorType>(typeOf(number.getType())))
        number = DenseElementsAttr::get(type, Attribute(number));
      values.map(constant.getResult(),
                 arith::ConstantOp::create(b, op.getLoc(), number).getResult());
      continue;
    }
    if (op.getNumRegions() || !isMemoryEffectFree(&op))
      return op.emitError()
             << "no derivative rule for " << spellForUser(&op)
             << " inside of a function that is applied to every element; "
                "arithmetic and branches have one";
    Operation *lifted = b.clone(op, values);
    for (Value result : lifted->getResults())
      result.setType(typeOf(result.getType()));
  }
  return success();
}

/// The values that one side of a branch yields; `taken` is the condition under
/// which they count.
FailureOr<SmallVector<Value>> Lifting::liftSide(Region &side, Value taken,
                                                const IRMapping &values) {
  Block &block = side.front();
  IRMapping inner = values;
  llvm::SetVector<Value> read;
  if (!block.without_terminator().empty())
    getUsedValuesDefinedAbove(side, read);
  for (Value value : read) {
    if (!isDifferentiable(value.getType()))
      continue;
    Tile tile(b, block.front().getLoc(), values.lookup(value));
    inner.map(value, where(taken, tile, tile.constant(1.0)));
  }
  if (failed(lift(block, inner)))
    return failure();
  return llvm::map_to_vector(block.getTerminator()->getOperands(),
                             [&](Value value) { return inner.lookup(value); });
}

LogicalResult Lifting::liftIf(scf::IfOp op, IRMapping &values) {
  if (op.getNumResults() == 0)
    return op.emitError("no derivative rule for a branch without results "
                        "inside of a function that is applied to every "
                        "element; assign what it chooses");
  Location loc = op.getLoc();
  Value condition = values.lookup(op.getCondition());
  Value all = integerOf(b, loc, condition.getType(), 1);
  Value otherwise = arith::XOrIOp::create(b, loc, condition, all);
  auto onThen = liftSide(op.getThenRegion(), condition, values);
  auto onElse = liftSide(op.getElseRegion(), otherwise, values);
  if (failed(onThen) || failed(onElse))
    return failure();
  for (auto [result, a, c] : llvm::zip_equal(op.getResults(), *onThen, *onElse))
    values.map(result,
               arith::SelectOp::create(b, loc, condition, a, c).getResult());
  return success();
}

FailureOr<TileFunction>
TileFunction::lift(Region &region, std::optional<ArrayRef<int64_t>> shape) {
  Operation *parent = region.getParentOp();
  if (!region.hasOneBlock())
    return parent->emitError("no derivative rule for a function with an early "
                             "return that is applied to every element; return "
                             "once, at the end");
  OpBuilder b(region.getContext());
  auto function = triton::FuncOp::create(b, parent->getLoc(), "lifted",
                                         b.getFunctionType({}, {}));
  OwningOpRef<triton::FuncOp> owner(function);
  Block *body = b.createBlock(&function.getBody());
  Lifting lifting(b, shape);
  IRMapping values;
  auto addArgument = [&](Value scalar) {
    values.map(scalar, body->addArgument(lifting.typeOf(scalar.getType()),
                                         scalar.getLoc()));
  };

  Block &block = region.front();
  llvm::for_each(block.getArguments(), addArgument);
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(region, used);
  llvm::for_each(used, addArgument);
  if (failed(lifting.lift(block, values)))
    return failure();
  SmallVector<Value> results =
      llvm::map_to_vector(block.getTerminator()->getOperands(),
                          [&](Value value) { return values.lookup(value); });
  triton::ReturnOp::create(b, block.getTerminator()->getLoc(), results);
  return TileFunction(std::move(owner), block.getNumArguments(),
                      used.takeVector());
}

/// For a maximum or minimum, the comparison that is true if its first operand
/// is the result; none for other operations.
static std::optional<arith::CmpFPredicate> comparesBy(Operation &op) {
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(op))
    return arith::CmpFPredicate::OGE;
  if (isa<arith::MinimumFOp, arith::MinNumFOp>(op))
    return arith::CmpFPredicate::OLE;
  return std::nullopt;
}

void TileFunction::preferFirstOnTies() {
  for (Operation &op : llvm::make_early_inc_range(body())) {
    std::optional<arith::CmpFPredicate> predicate = comparesBy(op);
    if (!predicate)
      continue;
    OpBuilder b(&op);
    Tile first(b, op.getLoc(), op.getOperand(0));
    Tile second = first.like(op.getOperand(1));
    // NaN is passed on by some, and loses against a number in others.
    Tile nan = isa<arith::MaximumFOp, arith::MinimumFOp>(op) ? first : second;
    Value isFirst =
        arith::OrIOp::create(b, op.getLoc(), compare(*predicate, first, second),
                             compare(arith::CmpFPredicate::UNO, nan, nan));
    op.getResult(0).replaceAllUsesWith(where(isFirst, first, second));
    op.erase();
  }
}

//===----------------------------------------------------------------------===//
// Use
//===----------------------------------------------------------------------===//

void TileFunction::bind(Differentiation &outer, ValueRange arguments,
                        IRMapping &mapping) const {
  mapping.map(body().getArguments().take_front(numArguments), arguments);
  for (auto [capture, argument] : llvm::zip_equal(
           captures, body().getArguments().drop_front(numArguments)))
    mapping.map(argument, splatTo(outer.builder, outer.loc(),
                                  outer.primal(capture), argument.getType()));
}

SmallVector<Value> TileFunction::evaluate(Differentiation &in,
                                          ValueRange arguments) const {
  IRMapping mapping;
  bind(in, arguments, mapping);
  for (Operation &op : body().without_terminator())
    in.builder.clone(op, mapping);
  return llvm::map_to_vector(
      body().getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookup(value); });
}

FailureOr<TileFunction::Pairs>
TileFunction::push(Tangents &outer, ValueRange arguments,
                   ArrayRef<Value> tangents) const {
  SmallVector<Value> independent;
  for (auto [argument, tangent] : llvm::zip(body().getArguments(), tangents))
    if (tangent)
      independent.push_back(argument);
  ValueRange results = body().getTerminator()->getOperands();
  Activity activity(function.get(), independent, results);
  Tangents inner(outer.builder, activity, outer.loc());
  bind(outer, arguments, inner.primals);
  for (auto [argument, tangent] : llvm::zip(body().getArguments(), tangents))
    inner.set(argument, tangent);
  if (failed(inner.push(body())))
    return failure();
  Pairs pairs{{}, inner.get(results)};
  for (Value result : results)
    pairs.values.push_back(inner.primal(result));
  return pairs;
}

FailureOr<SmallVector<Value>> TileFunction::pullBack(
    Adjoint &adjoint, ValueRange arguments, ArrayRef<Value> cotangents,
    const llvm::BitVector &wanted, ArrayRef<Value> masks) const {
  SmallVector<Value> independent, dependent, conditions;
  IRMapping outside;
  bind(adjoint, arguments, outside);
  unsigned own = body().getNumArguments();
  for (unsigned index : wanted.set_bits())
    independent.push_back(body().getArgument(index));
  for (auto [number, result] :
       llvm::enumerate(body().getTerminator()->getOperands())) {
    if (!cotangents[number])
      continue;
    dependent.push_back(result);
    Value mask = masks.empty() ? Value() : masks[number];
    // A condition is a value of the function.
    conditions.push_back(
        mask ? Value(body().addArgument(mask.getType(), mask.getLoc()))
             : Value());
    if (mask)
      outside.map(conditions.back(), mask);
  }
  llvm::scope_exit withoutMasks(
      [&] { body().eraseArguments(own, body().getNumArguments() - own); });
  Activity activity(function.get(), independent, dependent);
  LiveLanes lanes(function.get(), activity, dependent, conditions);
  Adjoint inner(adjoint.builder, activity, lanes, adjoint.loc(), /*tapes=*/0,
                adjoint.assumed);
  inner.primals = outside;
  inner.recompute(body());
  for (auto [result, cotangent] :
       llvm::zip_equal(body().getTerminator()->getOperands(), cotangents))
    inner.add(result, cotangent);
  if (failed(inner.reverse(body())))
    return failure();
  return llvm::map_to_vector(
      body().getArguments().take_front(numArguments),
      [&](Value argument) { return inner.get(argument); });
}

llvm::BitVector TileFunction::findVaried(const llvm::BitVector &varied) const {
  SmallVector<Value> independent;
  for (unsigned index : varied.set_bits())
    independent.push_back(body().getArgument(index));
  Activity activity(function.get(), independent, {});
  llvm::BitVector results(getNumResults());
  for (auto [index, result] :
       llvm::enumerate(body().getTerminator()->getOperands()))
    results[index] = activity.isVaried(result);
  return results;
}

llvm::BitVector TileFunction::findMembers(const llvm::BitVector &active) const {
  llvm::BitVector members = active;
  for (llvm::BitVector before; before != members;) {
    before = members;
    // On the left and on the right side.
    llvm::BitVector varied = members;
    varied.resize(2 * members.size());
    for (unsigned index : members.set_bits())
      varied.set(index + members.size());
    members |= findVaried(varied);
  }
  return members;
}

Value TileFunction::findActiveCapture(const Differentiation &in) const {
  for (Value capture : captures)
    if (in.isActive(capture))
      return capture;
  return {};
}
