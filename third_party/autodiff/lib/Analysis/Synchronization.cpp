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
  auto flow = [&](Value from, Value to) {
    sources[to].push_back(from);
    dependents[from].push_back(to);
  };
  kernel.getBody().walk([&](Operation *op) {
    if (!followFlow(op, flow)) {
      for (Value used : getUsedValues(op))
        for (Value result : op->getResults())
          flow(used, result);
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

/// What is reached from `value`, itself too.
static SetVector<Value>
follow(Value value, const llvm::DenseMap<Value, SmallVector<Value>> &next) {
  SetVector<Value> found;
  found.insert(value);
  for (unsigned number = 0; number < found.size(); ++number)
    if (auto it = next.find(found[number]); it != next.end())
      found.insert_range(it->second);
  return found;
}

SetVector<Value> Synchronization::collectSources(Value value) const {
  return follow(value, sources);
}

/// Whether something is computed from what `read` returns and from a signal: if
/// the signal says that nothing is there yet, it may leave that out.
bool Synchronization::meetsDecision(Operation *read) const {
  return llvm::any_of(follow(read->getResult(0), dependents),
                      [&](Value value) { return decided.contains(value); });
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

/// Whether `op` asks what memory holds just now, and the answer is used.
static bool asksAgain(Operation *op) {
  if (op->use_empty())
    return false;
  if (auto load = dyn_cast<triton::LoadOp>(op))
    return load.getIsVolatile() || load.getCache() == triton::CacheModifier::CV;
  if (isa<triton::ElementwiseInlineAsmOp, triton::ExternElementwiseOp>(op))
    return !isMemoryEffectFree(op);
  return isa<triton::AtomicRMWOp, triton::AtomicCASOp>(op);
}

/// Whether a program may see by `op` how far other programs have come. By
/// floats that nothing is decided by it does not.
bool Synchronization::isSignal(Operation *op) const {
  if (polling.contains(op))
    return true;
  return asksAgain(op) && llvm::any_of(op->getResults(), [&](Value result) {
           return llvm::any_of(follow(result, dependents), [](Value value) {
             return !isDifferentiable(value.getType());
           });
         });
}

void Synchronization::findSpins(triton::FuncOp kernel) {
  kernel.walk([&](Operation *loop) {
    if (!isa<scf::WhileOp, scf::ForOp>(loop))
      return;
    bool hasSignal = loop->walk([&](Operation *op) {
                           return isSignal(op) ? WalkResult::interrupt()
                                               : WalkResult::advance();
                         })
                         .wasInterrupted();
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
  kernel.walk([&](Operation *op) {
    if (!isSignal(op))
      return;
    signals.push_back(op);
    for (Value result : op->getResults())
      decided.insert_range(follow(result, dependents));
  });
}

Synchronization::Synchronization(triton::FuncOp kernel) {
  bool mayWait = kernel
                     .walk([&](Operation *op) {
                       return isa<scf::WhileOp>(op) || asksAgain(op)
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

/// Whether `read` may run after one of `earlier`.
static bool mayFollow(Operation *read, ArrayRef<Operation *> earlier) {
  return llvm::any_of(earlier, [&](Operation *op) {
    bool isHidden = op->getBlock() != read->getBlock() &&
                    mutation::isMade("synchronization:waits in branches");
    return mayRunAfter(read, op) && !isHidden;
  });
}

bool Synchronization::orders(Operation *read) const {
  if (signals.empty())
    return false;
  if (anyDecided(read->getOperands()))
    return true;
  for (Operation *op = read; !isa<triton::FuncOp>(op); op = op->getParentOp())
    if (anyDecided(getDeciding(op)))
      return true;
  return mayFollow(read, waits) ||
         (mayFollow(read, signals) && meetsDecision(read));
}

bool Synchronization::observes(Operation *read) const {
  return isSignal(read) || polls.contains(read) || orders(read) ||
         mayFollow(read, signals);
}
