//===- LoopBounds.cpp - What loops and branches say of numbers ------------===//
#include "autodiff/Analysis/LoopBounds.h"

#include "autodiff/Analysis/TripCounts.h"

using namespace mlir;
using namespace mlir::autodiff;

/// The constant step of a loop that reaches `end` in whole steps.
static std::optional<int64_t>
findWholeStep(scf::ForOp loop, const LinearForm &lower, const LinearForm &end) {
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  return step && *step > 0 && (end - lower).isMultipleOf(*step) ? step
                                                                : std::nullopt;
}

Constraints mlir::autodiff::boundsAround(Operation *op) {
  constexpr auto kFrom = ScalarExpr::From::Memory;
  Operation *around = op->getParentOp();
  if (auto branch = dyn_cast<scf::IfOp>(around))
    return op->getBlock() == branch.thenBlock()
               ? constraintsOf(branch.getCondition(), kFrom)
               : constraintsOfNot(branch.getCondition());
  auto loop = dyn_cast<scf::ForOp>(around);
  if (!loop || loop.getUnsignedCmp())
    return std::nullopt;
  LoopEnd end = getEnd(loop);
  Constraints always = constraintsOf(end.condition, kFrom);
  auto number = LinearForm::of(loop.getInductionVar(), {}, kFrom);
  auto lower = LinearForm::of(loop.getLowerBound(), {}, kFrom);
  auto ends = smallestOf(end.end, kFrom);
  if (!always || !number || !lower || !ends)
    return std::nullopt;
  always->push_back(lessThan(*lower, *number, 1));
  for (const LinearForm &upper : *ends)
    always->push_back(lessThan(
        *number, upper, 1 - findWholeStep(loop, *lower, upper).value_or(1)));
  return always;
}

Constraints mlir::autodiff::boundsOfRunning(scf::ForOp loop,
                                            ScalarExpr::From from) {
  if (loop.getUnsignedCmp())
    return std::nullopt;
  return lessThan(loop.getLowerBound(), loop.getUpperBound(), /*slack=*/0,
                  from);
}

std::optional<LinearForm> mlir::autodiff::findLast(scf::ForOp loop) {
  auto lower = LinearForm::of(loop.getLowerBound());
  auto ends = smallestOf(loop.getUpperBound());
  if (!lower || !ends)
    return std::nullopt;
  for (const LinearForm &end : *ends)
    if (auto step = findWholeStep(loop, *lower, end))
      return end - LinearForm{ScalarExpr::constant(*step), {}};
  return std::nullopt;
}
