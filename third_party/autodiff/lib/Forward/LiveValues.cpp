//===- LiveValues.cpp - Values that effects depend on ---------------------===//
#include "autodiff/Forward/LiveValues.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

void LiveValues::mark(Value value) {
  if (live.insert(value).second)
    pending.push_back(value);
}

void LiveValues::follow(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  Operation *op =
      argument ? argument.getOwner()->getParentOp() : value.getDefiningOp();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (value == loop.getInductionVar())
      return;
    unsigned number = argument ? argument.getArgNumber() - 1
                               : cast<OpResult>(value).getResultNumber();
    mark(loop.getInitArgs()[number]);
    mark(loop.getYieldedValues()[number]);
    mark(loop.getRegionIterArg(number));
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    mark(branch.thenYield().getOperand(number));
    mark(branch.elseYield().getOperand(number));
  } else if (!argument) {
    llvm::for_each(op->getOperands(), [&](Value operand) { mark(operand); });
  }
}

LiveValues::LiveValues(triton::FuncOp kernel) {
  kernel.walk([&](Operation *op) {
    // What loops and branches yield is followed from their results.
    bool isFollowed = isa<scf::ForOp, scf::IfOp>(op) ||
                      (isa<scf::YieldOp>(op) &&
                       isa<scf::ForOp, scf::IfOp>(op->getParentOp()));
    if (auto loop = dyn_cast<scf::ForOp>(op))
      for (Value bound :
           {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
        mark(bound);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      mark(branch.getCondition());
    if (!isFollowed &&
        (!isMemoryEffectFree(op) || op->hasTrait<OpTrait::IsTerminator>()))
      llvm::for_each(op->getOperands(), [&](Value operand) { mark(operand); });
  });
  while (!pending.empty())
    follow(pending.pop_back_val());
}
