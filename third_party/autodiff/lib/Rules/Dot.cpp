//===- Dot.cpp - Matrix products ------------------------------------------===//
#include "LanesAcross.h"
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

  /// The primal of an operand as a factor of the other one's adjoint: zero in
  /// lanes that are not live, which are summed over with the others.
  Value factor(OpOperand &use, Value cotangent) {
    Value tile = operand(adjoint.primal(use.get()));
    if (adjoint.isFiniteElsewhere(use.get()) ||
        mutation::isMade("dot:rows without a cotangent"))
      return tile;
    auto type = cast<RankedTensorType>(tile.getType());
    Tile factor(b, adjoint.loc(), tile);
    auto [live, isExact] = emitLanes(adjoint, adjoint.lanes.through(use), type);
    if (!isExact) {
      // The axis of the product that this operand lacks.
      unsigned axis = type.getRank() - 1 - use.getOperandNumber();
      Value rows = findNonZeroAcross(b, adjoint.loc(), cotangent, axis);
      rows = repeatAlong(b, adjoint.loc(), rows, axis,
                         type.clone(b.getI1Type()));
      live = live ? arith::AndIOp::create(b, adjoint.loc(), live, rows) : rows;
    }
    if (!live)
      return tile;
    // What is rounded is selected before, as others select it.
    auto rounded = tile.getDefiningOp<arith::TruncFOp>();
    Tile exact = rounded ? factor.like(rounded.getIn()) : factor;
    Value kept = where(live, exact, exact.constant(0.0));
    return rounded ? castFloat(b, adjoint.loc(), kept, type.getElementType())
                   : kept;
  }

  void accumulateProduct(Value into, Value lhs, Value rhs) {
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
    Value d = operand(cotangent);
    if (adjoint.isActive(op.getA()))
      accumulateProduct(op.getA(), d,
                        transposed(factor(op.getBMutable(), cotangent)));
    if (adjoint.isActive(op.getB()))
      accumulateProduct(op.getB(), transposed(factor(op.getAMutable(), cotangent)),
                        d);
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
