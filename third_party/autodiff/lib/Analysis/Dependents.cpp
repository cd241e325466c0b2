//===- Dependents.cpp - What depends on values ----------------------------===//
#include "autodiff/Analysis/Dependents.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

SmallVector<Value> mlir::autodiff::resultsOf(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (use.getOperandNumber() < loop.getNumControlOperands())
      return {};
    unsigned index = use.getOperandNumber() - loop.getNumControlOperands();
    return {loop.getResult(index), loop.getRegionIterArg(index)};
  }
  if (isa<scf::YieldOp>(op)) {
    Operation *parent = op->getParentOp();
    unsigned index = use.getOperandNumber();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return {loop.getResult(index), loop.getRegionIterArg(index)};
    return isa<scf::IfOp>(parent) ? SmallVector<Value>{parent->getResult(index)}
                                  : SmallVector<Value>{};
  }
  return op->getResults();
}

llvm::DenseSet<Operation *>
mlir::autodiff::findDependents(SmallVector<Value> values) {
  llvm::DenseSet<Operation *> dependents;
  llvm::DenseSet<Value> seen(values.begin(), values.end());
  while (!values.empty())
    for (OpOperand &use : values.pop_back_val().getUses()) {
      dependents.insert(use.getOwner());
      for (Value result : resultsOf(use))
        if (seen.insert(result).second)
          values.push_back(result);
    }
  return dependents;
}
