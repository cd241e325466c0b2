//===- Combiner.cpp - What a reduction or scan combines with --------------===//
#include "autodiff/Rules/Combiner.h"

#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/TileFunction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

Combiner mlir::autodiff::classifyCombiner(Region &region) {
  Block &body = region.front();
  if (body.getNumArguments() != 2 || body.getOperations().size() != 2)
    return Combiner::Other;
  Operation &op = body.front();
  Value a = body.getArgument(0), b = body.getArgument(1);
  bool combinesBoth = op.getNumOperands() == 2 && op.getNumResults() == 1 &&
                      ((op.getOperand(0) == a && op.getOperand(1) == b) ||
                       (op.getOperand(0) == b && op.getOperand(1) == a));
  if (!combinesBoth || body.getTerminator()->getOperand(0) != op.getResult(0))
    return Combiner::Other;
  if (isa<arith::AddFOp>(op))
    return Combiner::Sum;
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(op))
    return Combiner::Max;
  if (isa<arith::MinimumFOp, arith::MinNumFOp>(op))
    return Combiner::Min;
  return Combiner::Other;
}

bool mlir::autodiff::isChoice(Region &region) {
  Block &body = region.front();
  unsigned count = body.getNumArguments() / 2;
  Value condition;
  bool prefersLeft = false;
  for (auto [index, value] :
       llvm::enumerate(body.getTerminator()->getOperands())) {
    auto select = value.getDefiningOp<arith::SelectOp>();
    if (!select || (condition && select.getCondition() != condition))
      return false;
    Value left = body.getArgument(index);
    Value right = body.getArgument(index + count);
    bool leftIfTrue = select.getTrueValue() == left;
    if (!condition)
      prefersLeft = leftIfTrue;
    condition = select.getCondition();
    if (leftIfTrue != prefersLeft ||
        select.getTrueValue() != (leftIfTrue ? left : right) ||
        select.getFalseValue() != (leftIfTrue ? right : left))
      return false;
  }
  return true;
}

/// Gives `op`, a reduction or scan, the combine function that `build` emits.
template <typename ReturnT, typename OpT>
static SmallVector<Value> combineWith(OpBuilder &b, OpT op,
                                      CombineBuilder build) {
  SmallVector<Type> types(op.getElementTypes());
  types.append(op.getElementTypes());
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&op.getCombineOp(), {}, types,
                              SmallVector<Location>(types.size(), op.getLoc()));
  ValueRange arguments = body->getArguments();
  unsigned count = op.getSrcs().size();
  ReturnT::create(
      b, op.getLoc(),
      build(b, arguments.take_front(count), arguments.drop_front(count)));
  return SmallVector<Value>(op.getResult());
}

SmallVector<Value> mlir::autodiff::scanWith(OpBuilder &b, Location loc,
                                            ValueRange tiles, unsigned axis,
                                            bool reverse,
                                            CombineBuilder build) {
  return combineWith<triton::ScanReturnOp>(
      b, triton::ScanOp::create(b, loc, tiles, axis, reverse), build);
}

SmallVector<Value> mlir::autodiff::reduceWith(OpBuilder &b, Location loc,
                                              ValueRange tiles, unsigned axis,
                                              CombineBuilder build) {
  return combineWith<triton::ReduceReturnOp>(
      b, triton::ReduceOp::create(b, loc, tiles, axis), build);
}

SmallVector<Value> mlir::autodiff::scanWith(Region &region, ValueRange tiles,
                                            unsigned axis, bool reverse,
                                            Differentiation &in) {
  IRMapping mapping;
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(region, captures);
  for (Value capture : captures)
    mapping.map(capture, in.primal(capture));
  auto inlineRegion = [&](OpBuilder &b, ValueRange running, ValueRange next) {
    // What runs from the end meets new elements on its left.
    if (reverse)
      std::swap(running, next);
    Block &block = region.front();
    mapping.map(block.getArguments().take_front(tiles.size()), running);
    mapping.map(block.getArguments().drop_front(tiles.size()), next);
    for (Operation &op : block.without_terminator())
      b.clone(op, mapping);
    return llvm::map_to_vector(
        block.getTerminator()->getOperands(),
        [&](Value value) { return mapping.lookupOrDefault(value); });
  };
  return scanWith(in.builder, in.loc(), tiles, axis, reverse, inlineRegion);
}

LogicalResult mlir::autodiff::pushPairs(
    Operation *op, Region &region, Tangents &tangents,
    llvm::function_ref<SmallVector<Value>(ValueRange tiles, CombineBuilder)>
        combine) {
  FailureOr<TileFunction> function =
      TileFunction::lift(region, /*shape=*/std::nullopt);
  if (failed(function))
    return failure();
  if (function->findActiveCapture(tangents))
    return op->emitError("no forward-mode rule for a combine function that "
                         "uses a differentiated value from outside; combine it "
                         "with the elements before or after");
  // Even shares would depend on the order in which elements meet.
  if (!mutation::isMade("tangents:even shares in pairs"))
    function->preferFirstOnTies();
  unsigned count = op->getNumOperands();
  llvm::BitVector members =
      function->findMembers(tangents.findActive(op->getOperands()));
  SmallVector<Value> tiles;
  for (Value source : op->getOperands())
    tiles.push_back(tangents.primal(source));
  for (unsigned index : members.set_bits())
    tiles.push_back(tangents.getOrZero(op->getOperand(index)));

  LogicalResult result = success();
  auto combinePairs = [&](OpBuilder &, ValueRange running, ValueRange next) {
    SmallVector<Value> arguments, moving;
    for (ValueRange side : {running, next}) {
      llvm::append_range(arguments, side.take_front(count));
      side = side.drop_front(count);
      for (unsigned index = 0; index < count; ++index) {
        moving.push_back(members[index] ? side.front() : Value());
        side = side.drop_front(members[index]);
      }
    }
    auto pairs = function->push(tangents, arguments, moving);
    result = failed(pairs) ? failure() : success();
    // What is returned when there is none only has the right types.
    if (failed(pairs))
      return SmallVector<Value>(running);
    SmallVector<Value> combined = pairs->values;
    for (unsigned index : members.set_bits()) {
      Value tangent = pairs->tangents[index];
      combined.push_back(
          tangent ? tangent
                  : tangents.constant(pairs->values[index].getType(), 0.0));
    }
    return combined;
  };
  SmallVector<Value> combined = combine(tiles, combinePairs);
  tangents.primals.map(op->getResults(),
                       ArrayRef<Value>(combined).take_front(count));
  for (auto [index, tangent] : llvm::zip_equal(
           members.set_bits(), ArrayRef<Value>(combined).drop_front(count)))
    tangents.add(op->getResult(index), tangent);
  return result;
}
