//===- Synchronization.cpp - Programs that wait for one another -----------===//
#include "autodiff/Analysis/Synchronization.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/UsedValues.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

/// The values that decide if, or how often, the operations in `op` run.
static SmallVector<Value> getDeciding(Operation *op) {
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return {loop.getConditionOp().getCondition()};
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()};
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return {branch.getCondition()};
  return {};
}

void Synchronization::collectFlow(triton::FuncOp kernel) {
  auto flow = [&](Value from, Value to) { sources[to].push_back(from); };
  kernel.getBody().walk([&](Operation *op) {
    if (!followFlow(op, flow)) {
      SetVector<Value> used = getUsedValues(op);
      for (Value result : op->getResults())
        llvm::append_range(sources[result], used);
      return;
    }
    for (Value value : getDeciding(op)) {
      for (Value result : op->getResults())
        flow(value, result);
      if (auto loop = dyn_cast<scf::ForOp>(op))
        flow(value, loop.getInductionVar());
    }
  });
}

SetVector<Value> Synchronization::collectSources(Value value) const {
  SetVector<Value> found;
  found.insert(value);
  for (unsigned next = 0; next < found.size(); ++next)
    if (auto it = sources.find(found[next]); it != sources.end())
      found.insert_range(it->second);
  return found;
}

/// Whether `loop` itself stores to what `load` loads: then it waits for nobody.
static bool storesThere(Operation *loop, triton::LoadOp load) {
  return llvm::any_of(load.getPtr().getUsers(), [&](Operation *user) {
    auto store = dyn_cast<triton::StoreOp>(user);
    return store && store.getPtr() == load.getPtr() &&
           loop->isProperAncestor(store);
  });
}

void Synchronization::findPolls(triton::FuncOp kernel) {
  SmallVector<Value> written = getWrittenPointers(kernel);
  kernel.walk([&](scf::WhileOp loop) {
    for (Value value : collectSources(getDeciding(loop).front())) {
      auto load = value.getDefiningOp<triton::LoadOp>();
      if (!load || !loop->isProperAncestor(load) || storesThere(loop, load))
        continue;
      polls.insert(load);
      if (mayAlias(load.getPtr(), written))
        polling.insert(load);
    }
  });
}

/// Whether a program may see by `op` how far other programs have come.
bool Synchronization::isSignal(Operation *op) const {
  if (op->use_empty())
    return false;
  if (auto load = dyn_cast<triton::LoadOp>(op))
    return load.getIsVolatile() ||
           load.getCache() == triton::CacheModifier::CV ||
           polling.contains(op);
  if (isa<triton::ElementwiseInlineAsmOp, triton::ExternElementwiseOp>(op))
    return !isMemoryEffectFree(op);
  return isa<triton::AtomicRMWOp, triton::AtomicCASOp>(op);
}

void Synchronization::findSpins(triton::FuncOp kernel) {
  kernel.walk([&](Operation *loop) {
    if (!isa<scf::WhileOp, scf::ForOp>(loop))
      return;
    bool hasSignal = loop->walk([&](Operation *op) {
                           return isSignal(op) ? WalkResult::interrupt()
                                               : WalkResult::advance();
                         }).wasInterrupted();
    if (!hasSignal)
      return;
    waits.push_back(loop);
    if (isa<scf::WhileOp>(loop) &&
        llvm::any_of(collectSources(getDeciding(loop).front()),
                     [&](Value value) {
                       Operation *op = value.getDefiningOp();
                       return op && loop->isProperAncestor(op) && isSignal(op);
                     }))
      spins.insert(loop);
  });
}

/// Finds what depends on signals.
void Synchronization::decide(triton::FuncOp kernel) {
  llvm::DenseMap<Value, SmallVector<Value>> dependents;
  for (auto &[value, from] : sources)
    for (Value source : from)
      dependents[source].push_back(value);
  SmallVector<Value> pending;
  kernel.walk([&](Operation *op) {
    if (isSignal(op))
      llvm::append_range(pending, op->getResults());
  });
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (decided.insert(value).second)
      llvm::append_range(pending, dependents.lookup(value));
  }
}

Synchronization::Synchronization(triton::FuncOp kernel) {
  bool mayWait = kernel
                     .walk([&](Operation *op) {
                       return isa<scf::WhileOp>(op) || isSignal(op)
                                  ? WalkResult::interrupt()
                                  : WalkResult::advance();
                     })
                     .wasInterrupted();
  if (!mayWait)
    return;
  collectFlow(kernel);
  findPolls(kernel);
  findSpins(kernel);
  decide(kernel);
}

Operation *Synchronization::findSpin(Operation *op) const {
  Operation *found = nullptr;
  for (; op && !spins.empty(); op = op->getParentOp())
    if (isSpin(op))
      found = op;
  return found;
}

bool Synchronization::anyDecided(ValueRange values) const {
  return llvm::any_of(values,
                      [&](Value value) { return decided.contains(value); });
}

bool Synchronization::orders(Operation *read) const {
  if (decided.empty())
    return false;
  if (anyDecided(read->getOperands()))
    return true;
  for (Operation *op = read; !isa<triton::FuncOp>(op); op = op->getParentOp())
    if (anyDecided(getDeciding(op)))
      return true;
  return llvm::any_of(waits, [&](Operation *wait) {
    bool isHidden = wait->getBlock() != read->getBlock() &&
                    mutation::isMade("synchronization:waits in branches");
    return mayRunAfter(read, wait) && !isHidden;
  });
}

bool Synchronization::observes(Operation *read) const {
  return isSignal(read) || polls.contains(read) || orders(read);
}
