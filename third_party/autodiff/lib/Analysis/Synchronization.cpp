//===- Synchronization.cpp - Programs that wait for one another -----------===//
#include "autodiff/Analysis/Synchronization.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Whether `op` observes other programs. (A compiler may load once for several
/// non-volatile loads, so nothing can wait by those.)
static bool isSignal(Operation *op) {
  if (auto load = dyn_cast<triton::LoadOp>(op))
    return load.getIsVolatile();
  return isa<triton::AtomicRMWOp, triton::AtomicCASOp>(op);
}

bool Synchronization::anyMarked(ValueRange values) const {
  return llvm::any_of(values,
                      [&](Value value) { return decided.contains(value); });
}

/// Whether other programs decide if, or how often, the operations in `op` run.
bool Synchronization::isDecided(Operation *op) const {
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return decided.contains(loop.getConditionOp().getCondition());
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return decided.contains(loop.getLowerBound()) ||
           decided.contains(loop.getUpperBound());
  auto branch = dyn_cast<scf::IfOp>(op);
  return branch && decided.contains(branch.getCondition());
}

/// Marks the results of `op` if an operand is marked; returns whether they are
/// newly marked.
bool Synchronization::mark(Operation *op) {
  bool marked = isSignal(op) || anyMarked(op->getOperands());
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (block.mightHaveTerminator())
        marked |= anyMarked(block.getTerminator()->getOperands());
  if (!marked)
    return false;
  bool news = false;
  for (Value result : op->getResults())
    news |= decided.insert(result).second;
  for (Region &region : op->getRegions())
    for (Value argument : region.getArguments())
      news |= decided.insert(argument).second;
  return news;
}

Synchronization::Synchronization(triton::FuncOp kernel) {
  for (bool changed = true; changed;) {
    changed = false;
    kernel.getBody().walk([&](Operation *op) { changed |= mark(op); });
  }
}

bool Synchronization::orders(Operation *read) const {
  if (decided.empty())
    return false;
  if (anyMarked(read->getOperands()))
    return true;
  for (Operation *op = read; !isa<triton::FuncOp>(op); op = op->getParentOp()) {
    if (isDecided(op))
      return true;
    for (Operation *before = op->getPrevNode(); before;
         before = before->getPrevNode())
      if (isa<scf::WhileOp>(before) && isDecided(before))
        return true;
  }
  return false;
}
