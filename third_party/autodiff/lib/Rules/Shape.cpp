//===- Shape.cpp - Operations that move elements, and their transposes ----===//
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Differentiation.h"
#include "autodiff/Rules/RuleTable.h"

using namespace mlir;
using namespace mlir::autodiff;

static Value sumOfLanes(triton::SplatOp, Value cotangent, Differentiation &in) {
  return sumAll(in.builder, in.loc(), cotangent);
}

static Value splat(triton::UnsplatOp op, Value cotangent, Differentiation &in) {
  return triton::SplatOp::create(
      in.builder, in.loc(), Differentiation::typeFor(op.getSrc().getType()),
      cotangent);
}

static Value sumOverRepeated(triton::BroadcastOp op, Value cotangent,
                             Differentiation &in) {
  auto from = cast<RankedTensorType>(op.getSrc().getType());
  auto to = cast<RankedTensorType>(op.getType());
  SmallVector<unsigned> repeated;
  for (unsigned axis = 0; axis < from.getRank(); ++axis)
    if (from.getDimSize(axis) != to.getDimSize(axis))
      repeated.push_back(axis);
  Value sum = cotangent;
  for (unsigned axis : llvm::reverse(repeated))
    sum = sumOver(in.builder, in.loc(), sum, axis);
  if (!isa<RankedTensorType>(sum.getType()))
    return triton::SplatOp::create(in.builder, in.loc(),
                                   Differentiation::typeFor(from), sum);
  for (unsigned axis : repeated)
    sum = triton::ExpandDimsOp::create(in.builder, in.loc(), sum, axis);
  return sum;
}

template <typename OpT>
static Value reshapeBack(OpT op, Value cotangent, Differentiation &in) {
  return triton::ReshapeOp::create(
      in.builder, in.loc(), Differentiation::typeFor(op.getSrc().getType()),
      cotangent);
}

static Value transposeBack(triton::TransOp op, Value cotangent,
                           Differentiation &in) {
  return triton::TransOp::create(in.builder, in.loc(), cotangent,
                                 invertOrder(op.getOrder()));
}

static FailureOr<SmallVector<Value>>
splitUp(Operation *, ArrayRef<Value> cotangents, Differentiation &in) {
  auto parts = triton::SplitOp::create(in.builder, in.loc(), cotangents[0]);
  return SmallVector<Value>{parts.getOutLHS(), parts.getOutRHS()};
}

static FailureOr<SmallVector<Value>>
joinHalves(Operation *op, ArrayRef<Value> cotangents, Differentiation &in) {
  SmallVector<Value> halves(cotangents);
  for (auto [half, result] : llvm::zip_equal(halves, op->getResults()))
    if (!half)
      half = in.constant(result.getType(), 0.0);
  return SmallVector<Value>{
      triton::JoinOp::create(in.builder, in.loc(), halves[0], halves[1])};
}

void mlir::autodiff::addShapeRules(RuleTable &table) {
  table.addLinear<triton::SplatOp>("x̄ += Σ ȳ",
                                   {applyItself, mapOf(sumOfLanes)});
  table.addLinear<triton::UnsplatOp>("x̄ += splat ȳ",
                                     {applyItself, mapOf(splat)});
  table.addLinear<triton::BroadcastOp>("x̄ += Σ ȳ over the repeated axes",
                                       {applyItself, mapOf(sumOverRepeated)});
  table.addLinear<triton::ExpandDimsOp>(
      "x̄ += reshape ȳ",
      {applyItself, mapOf(reshapeBack<triton::ExpandDimsOp>)});
  table.addLinear<triton::ReshapeOp>(
      "x̄ += reshape ȳ", {applyItself, mapOf(reshapeBack<triton::ReshapeOp>)});
  table.addLinear<triton::TransOp>("x̄ += transpose ȳ by the inverse order",
                                   {applyItself, mapOf(transposeBack)});
  // Swapping twice does nothing.
  table.addLinear<SwapOp>("x̄ += swap ȳ", {applyItself, applyItself});
  table.addLinear<triton::JoinOp>("(x̄₁, x̄₂) += split ȳ",
                                  {applyItself, splitUp});
  table.addLinear<triton::SplitOp>("x̄ += join(ȳ₁, ȳ₂)",
                                   {applyItself, joinHalves});
}
