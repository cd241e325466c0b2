//===- Combiner.cpp - What a reduction or scan combines with --------------===//
#include "autodiff/Rules/Combiner.h"

#include "autodiff/Rules/Adjoint.h"
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

SmallVector<Value> mlir::autodiff::scanWith(
    OpBuilder &b, Location loc, ValueRange tiles, unsigned axis, bool reverse,
    llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange, ValueRange)>
        build) {
  auto scan = triton::ScanOp::create(b, loc, tiles, axis, reverse);
  SmallVector<Type> types(scan.getElementTypes());
  types.append(scan.getElementTypes());
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&scan.getCombineOp(), {}, types,
                              SmallVector<Location>(types.size(), loc));
  ValueRange arguments = body->getArguments();
  triton::ScanReturnOp::create(b, loc,
                               build(b, arguments.take_front(tiles.size()),
                                     arguments.drop_front(tiles.size())));
  return SmallVector<Value>(scan.getResult());
}

SmallVector<Value> mlir::autodiff::scanWith(Region &region, ValueRange tiles,
                                            unsigned axis, bool reverse,
                                            Adjoint &adjoint) {
  IRMapping mapping;
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(region, captures);
  for (Value capture : captures)
    mapping.map(capture, adjoint.primal(capture));
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
  return scanWith(adjoint.builder, adjoint.loc(), tiles, axis, reverse,
                  inlineRegion);
}
