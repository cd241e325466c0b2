//===- SharedMemory.cpp - Shared memory that products take ----------------===//
#include "autodiff/Analysis/SharedMemory.h"
#include "autodiff/Analysis/LiveTiles.h"
#include "autodiff/Support/Elements.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct SharedMemory : LiveTiles {
  void useOperand(Value operand, int64_t summed, Operation *around);
  void useOperands(triton::DotOp dot, Operation *around);
  void use(Operation *op) override;
  void useFromInside(Operation *op) override {
    op->walk([&](triton::DotOp dot) { useOperands(dot, op); });
  }
};
} // namespace

void SharedMemory::use(Operation *op) {
  if (auto dot = dyn_cast<triton::DotOp>(op))
    return useOperands(dot, nullptr);
  for (Value operand : op->getOperands())
    if (operand.getDefiningOp<triton::DotOp>() && !isa<scf::YieldOp>(op))
      take(bytesOf(operand.getType()));
}

/// Holds an operand whose axis `summed` a product sums over. With `around`,
/// only operands from outside of that operation count.
void SharedMemory::useOperand(Value operand, int64_t summed,
                              Operation *around) {
  while (auto trans = operand.getDefiningOp<triton::TransOp>()) {
    summed = *trans.getAxisMap(0).toOperand(summed);
    operand = trans.getSrc();
  }
  if (around && around->isAncestor(operand.getParentBlock()->getParentOp()))
    return;
  unsigned bits =
      getElementTypeOrSelf(operand.getType()).getIntOrFloatBitWidth();
  hold(operand, bits == 16 ? 0 : summed, bytesOf(operand.getType()));
}

void SharedMemory::useOperands(triton::DotOp dot, Operation *around) {
  for (unsigned number : {0, 1})
    useOperand(dot->getOperand(number), *dot.getAxisMap(number).getSummed(),
               around);
}

double mlir::autodiff::countSharedMemory(triton::FuncOp kernel,
                                         Operation *first, Operation *last) {
  return SharedMemory().countMost(kernel, first, last);
}
