//===- Dot.cpp - Matrix products ------------------------------------------===//
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/Infinities.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tile.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// D = A·B + C: Ā += D̄·Bᵀ, B̄ += Aᵀ·D̄, C̄ += D̄, with the operands in the
/// forward's type and precision, accumulated in the adjoint's.
struct DotReversal {
  triton::DotOp op;
  Adjoint &adjoint;
  OpBuilder &b = adjoint.builder;

  Value transposed(Value tile) {
    unsigned rank = cast<RankedTensorType>(tile.getType()).getRank();
    SmallVector<int32_t> order(rank);
    for (unsigned axis = 0; axis < rank; ++axis)
      order[axis] = axis;
    std::swap(order[rank - 1], order[rank - 2]);
    return triton::TransOp::create(b, adjoint.loc(), tile,
                                   ArrayRef<int32_t>(order));
  }

  /// 8-bit floats are too coarse for a cotangent: multiply in f16 instead.
  Type operandElement() {
    Type element = cast<RankedTensorType>(op.getA().getType()).getElementType();
    return element.getIntOrFloatBitWidth() == 8 ? b.getF16Type() : element;
  }

  Value operand(Value value) {
    return castFloat(b, adjoint.loc(), value, operandElement());
  }

  /// The primal of `value`, which lacks an axis of the cotangent, as a factor.
  /// It is zero where the cotangent is along all of that axis: nothing says
  /// that the primal is a number there, and the product is summed over it.
  Value factor(Value value, Value cotangent, unsigned axis) {
    Value tile = operand(adjoint.primal(value));
    if (isFiniteEverywhere(tile) ||
        mutation::isMade("dot:rows without a cotangent"))
      return tile;
    Tile factor(b, adjoint.loc(), tile);
    Value live = findLiveLanes(factor.like(cotangent), &adjoint);
    if (live)
      live = findLiveAcross(b, adjoint.loc(), live, axis);
    if (!live)
      return tile;
    auto type = cast<RankedTensorType>(tile.getType());
    live = repeatAlong(b, adjoint.loc(), live, axis, type.clone(b.getI1Type()));
    // What is rounded is selected before, as others select it.
    auto rounded = tile.getDefiningOp<arith::TruncFOp>();
    Tile exact = rounded ? factor.like(rounded.getIn()) : factor;
    Value kept = where(live, exact, exact.constant(0.0));
    return rounded ? castFloat(b, adjoint.loc(), kept, type.getElementType())
                   : kept;
  }

  void accumulateProduct(Value into, Value lhs, Value rhs) {
    if (!adjoint.isActive(into))
      return;
    mutation::inContribution(b, adjoint.loc(), into, lhs);
    Value sum = adjoint.get(into);
    if (!sum)
      sum = adjoint.constant(into.getType(), 0.0);
    adjoint.set(into, triton::DotOp::create(
                          b, adjoint.loc(), sum.getType(), lhs, rhs, sum,
                          op.getInputPrecision(), op.getMaxNumImpreciseAcc()));
  }

  void run(Value cotangent) {
    adjoint.add(op.getC(), cotangent);
    if (!adjoint.isActive(op.getA()) && !adjoint.isActive(op.getB()))
      return;
    unsigned rank = cast<RankedTensorType>(op.getType()).getRank();
    Value d = operand(cotangent);
    accumulateProduct(op.getA(), d,
                      transposed(factor(op.getB(), cotangent, rank - 2)));
    accumulateProduct(op.getB(),
                      transposed(factor(op.getA(), cotangent, rank - 1)), d);
  }
};
} // namespace

static LogicalResult dot(triton::DotOp op, Adjoint &adjoint) {
  if (Value cotangent = adjoint.get(op.getResult()))
    DotReversal{op, adjoint}.run(cotangent);
  return success();
}

void mlir::autodiff::addDotRules(RuleTable &table) {
  table.add<triton::DotOp>("Ā += D̄·Bᵀ, B̄ += Aᵀ·D̄, C̄ += D̄", dot);
}
