//===- Combiner.cpp - What a reduction or scan combines with --------------===//
#include "autodiff/Builders/Combiner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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
