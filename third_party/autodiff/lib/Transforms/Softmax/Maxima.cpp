//===- Maxima.cpp - What is a maximum, and how it may move ----------------===//
#include "Maxima.h"

#include "autodiff/Analysis/ScalingDegrees.h"
#include "autodiff/Builders/Combiner.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Whether a selection is `value` where that is finite, and otherwise a finite
/// constant.
static bool isGuardOf(arith::SelectOp select, Value value) {
  ScalingDegrees degrees;
  degrees.seed(value, Degree().with(Degree::Special::Finite));
  std::optional<bool> choice = degrees.decide(select.getCondition());
  if (!choice)
    return false;
  Value chosen = select.getTrueValue(), other = select.getFalseValue();
  if (!*choice)
    std::swap(chosen, other);
  APFloat number(0.0);
  return chosen == value && matchPattern(other, m_ConstantFloat(&number)) &&
         number.isFinite();
}

Operation *mlir::autodiff::getCarriedMaximum(scf::ForOp loop, unsigned index) {
  Operation *next = loop.getYieldedValues()[index].getDefiningOp();
  if (auto select = dyn_cast_or_null<arith::SelectOp>(next))
    for (Value side : {select.getTrueValue(), select.getFalseValue()})
      if (isGuardOf(select, side))
        next = side.getDefiningOp();
  return isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(next) ? next
                                                                    : nullptr;
}

/// Makes `last` take `current`, which it or an earlier maximum takes; false if
/// none does.
static bool raise(Operation *last, Value current) {
  if (llvm::is_contained(last->getOperands(), current))
    return true;
  for (OpOperand &operand : last->getOpOperands()) {
    Operation *inner = operand.get().getDefiningOp();
    if (!inner || inner->getName() != last->getName() || !inner->hasOneUse() ||
        inner->getBlock() != last->getBlock() || !raise(inner, current))
      continue;
    OpOperand &other = last->getOpOperand(1 - operand.getOperandNumber());
    inner->replaceUsesOfWith(current, other.get());
    inner->moveBefore(last);
    other.set(current);
    return true;
  }
  return false;
}

void mlir::autodiff::raiseCarriedMaxima(scf::ForOp loop) {
  for (unsigned index = 0; index < loop.getNumResults(); ++index)
    if (Operation *last = getCarriedMaximum(loop, index))
      (void)raise(last, loop.getRegionIterArg(index));
}

bool mlir::autodiff::isMaximum(Value value) {
  Operation *source = value.getDefiningOp();
  if (auto reduce = dyn_cast_or_null<triton::ReduceOp>(source))
    return reduce.getSrcs().size() == 1 &&
           classifyCombiner(reduce.getCombineOp()) == Combiner::Max;
  auto loop = dyn_cast_or_null<scf::ForOp>(source);
  return loop &&
         getCarriedMaximum(loop, cast<OpResult>(value).getResultNumber());
}

SmallVector<unsigned, 2> mlir::autodiff::seedAxes(Value value) {
  SmallVector<unsigned, 2> axes;
  if (auto tile = dyn_cast<RankedTensorType>(value.getType()))
    for (unsigned axis = 0; axis < tile.getRank(); ++axis)
      if (tile.getDimSize(axis) > 1)
        axes.push_back(axis);
  return axes;
}
