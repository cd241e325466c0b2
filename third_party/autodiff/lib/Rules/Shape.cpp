//===- Shape.cpp - Operations that move elements: their transposes --------===//
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tile.h"
#include "mlir/IR/Operation.h"

using namespace mlir;
using namespace mlir::autodiff;

/// An adjoint of one operand from that of the result.
template <typename OpT>
static LogicalResult transposeWith(OpT op, Adjoint &adjoint,
                                   llvm::function_ref<Value(Value)> transpose) {
  Value source = op->getOperand(0);
  if (Value cotangent = adjoint.get(op->getResult(0)))
    if (adjoint.isActive(source))
      adjoint.add(source, transpose(cotangent));
  return success();
}

static LogicalResult splat(triton::SplatOp op, Adjoint &adjoint) {
  return transposeWith(op, adjoint, [&](Value cotangent) {
    return sumAll(adjoint.builder, adjoint.loc(), cotangent);
  });
}

static LogicalResult unsplat(triton::UnsplatOp op, Adjoint &adjoint) {
  return transposeWith(op, adjoint, [&](Value cotangent) -> Value {
    return triton::SplatOp::create(adjoint.builder, adjoint.loc(),
                                   Adjoint::typeFor(op.getSrc().getType()),
                                   cotangent);
  });
}

static LogicalResult broadcast(triton::BroadcastOp op, Adjoint &adjoint) {
  return transposeWith(op, adjoint, [&](Value cotangent) -> Value {
    auto from = cast<RankedTensorType>(op.getSrc().getType());
    auto to = cast<RankedTensorType>(op.getType());
    SmallVector<unsigned> repeated;
    for (unsigned axis = 0; axis < from.getRank(); ++axis)
      if (from.getDimSize(axis) != to.getDimSize(axis))
        repeated.push_back(axis);
    Value sum = cotangent;
    for (unsigned axis : llvm::reverse(repeated))
      sum = sumOver(adjoint.builder, adjoint.loc(), sum, axis);
    if (!isa<RankedTensorType>(sum.getType()))
      return triton::SplatOp::create(adjoint.builder, adjoint.loc(),
                                     Adjoint::typeFor(from), sum);
    for (unsigned axis : repeated)
      sum = triton::ExpandDimsOp::create(adjoint.builder, adjoint.loc(), sum,
                                         axis);
    return sum;
  });
}

template <typename OpT>
static LogicalResult reshapeBack(OpT op, Adjoint &adjoint) {
  return transposeWith(op, adjoint, [&](Value cotangent) -> Value {
    return triton::ReshapeOp::create(adjoint.builder, adjoint.loc(),
                                     Adjoint::typeFor(op.getSrc().getType()),
                                     cotangent);
  });
}

static LogicalResult trans(triton::TransOp op, Adjoint &adjoint) {
  return transposeWith(op, adjoint, [&](Value cotangent) -> Value {
    return triton::TransOp::create(adjoint.builder, adjoint.loc(), cotangent,
                                   invertOrder(op.getOrder()));
  });
}

static LogicalResult join(triton::JoinOp op, Adjoint &adjoint) {
  Value cotangent = adjoint.get(op.getResult());
  if (!cotangent)
    return success();
  auto parts =
      triton::SplitOp::create(adjoint.builder, adjoint.loc(), cotangent);
  adjoint.add(op.getLhs(), parts.getOutLHS());
  adjoint.add(op.getRhs(), parts.getOutRHS());
  return success();
}

static LogicalResult split(triton::SplitOp op, Adjoint &adjoint) {
  Value lhs = adjoint.get(op.getOutLHS()), rhs = adjoint.get(op.getOutRHS());
  if (!lhs && !rhs)
    return success();
  if (!lhs)
    lhs = adjoint.constant(op.getOutLHS().getType(), 0.0);
  if (!rhs)
    rhs = adjoint.constant(op.getOutRHS().getType(), 0.0);
  adjoint.add(op.getSrc(),
              triton::JoinOp::create(adjoint.builder, adjoint.loc(), lhs, rhs));
  return success();
}

static LogicalResult swap(SwapOp op, Adjoint &adjoint) {
  return transposeWith(op, adjoint, [&](Value cotangent) -> Value {
    return SwapOp::create(adjoint.builder, adjoint.loc(), cotangent,
                          op.getAxis());
  });
}

void mlir::autodiff::addShapeRules(RuleTable &table) {
  table.add<triton::SplatOp>("x̄ += Σ ȳ", splat);
  table.add<triton::UnsplatOp>("x̄ += splat ȳ", unsplat);
  table.add<triton::BroadcastOp>("x̄ += Σ ȳ over the repeated axes", broadcast);
  table.add<triton::ExpandDimsOp>("x̄ += reshape ȳ",
                                  reshapeBack<triton::ExpandDimsOp>);
  table.add<triton::ReshapeOp>("x̄ += reshape ȳ",
                               reshapeBack<triton::ReshapeOp>);
  table.add<triton::TransOp>("x̄ += transpose ȳ by the inverse order", trans);
  table.add<SwapOp>("x̄ += swap ȳ", swap);
  table.add<triton::JoinOp>("(x̄₁, x̄₂) += split ȳ", join);
  table.add<triton::SplitOp>("x̄ += join(ȳ₁, ȳ₂)", split);
}
