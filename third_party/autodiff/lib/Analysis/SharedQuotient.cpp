//===- SharedQuotient.cpp - Which lanes have the same address -------------===//
#include "autodiff/Analysis/SharedQuotient.h"

#include "autodiff/Analysis/LaneSteps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Whether a condition holds of the steps of a value along all axes of its
/// tile.
static bool allSteps(Value value, llvm::function_ref<bool(int64_t)> holds) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  return llvm::all_of(llvm::seq<int64_t>(tile ? tile.getRank() : 0),
                      [&](int64_t axis) {
                        std::optional<int64_t> step = findLaneStep(value, axis);
                        return step && holds(*step);
                      });
}

static bool isSame(int64_t step) { return step == 0; }

/// Finds the only quotient; false if there is anything else.
static bool find(Value value, Operation *&quotient) {
  if (allSteps(value, isSame))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<arith::DivSIOp, arith::DivUIOp>(op) &&
      allSteps(op->getOperand(0), [](int64_t step) { return step >= 0; }) &&
      allSteps(op->getOperand(1), isSame)) {
    if (!quotient)
      quotient = op;
    return quotient == op;
  }
  return op->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return find(operand, quotient); });
}

Operation *mlir::autodiff::findSharedQuotient(Value value) {
  Operation *quotient = nullptr;
  return find(value, quotient) ? quotient : nullptr;
}

int64_t mlir::autodiff::getPositionSpan(Operation *quotient) {
  Value position = quotient->getOperand(0);
  auto shape = cast<RankedTensorType>(position.getType()).getShape();
  int64_t span = 0;
  for (auto [axis, length] : llvm::enumerate(shape))
    span += (length - 1) * *findLaneStep(position, axis);
  return span;
}
