//===- MemoryFlow.cpp - What a kernel reads of its own stores -------------===//
#include "autodiff/Analysis/MemoryFlow.h"

#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Analysis/Pointers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mlir::autodiff;

Value mlir::autodiff::getWrittenValue(Operation *op) {
  if (auto store = dyn_cast<triton::StoreOp>(op))
    return store.getValue();
  if (auto atomic = dyn_cast<triton::AtomicRMWOp>(op))
    return atomic.getVal();
  if (auto atomic = dyn_cast<triton::AtomicCASOp>(op))
    return atomic.getVal();
  return {};
}

bool mlir::autodiff::selectsContent(triton::AtomicRMWOp op) {
  using triton::RMWOp;
  return llvm::is_contained(
      {RMWOp::MAX, RMWOp::MIN, RMWOp::UMAX, RMWOp::UMIN, RMWOp::XCHG},
      op.getAtomicRmwOp());
}

/// Whether `later` can run after `earlier` within one program; `loops` are
/// those whose next iteration it may be in.
static bool mayFollow(Operation *earlier, Operation *later,
                      SmallVectorImpl<Operation *> &loops) {
  for (Operation *loop = earlier->getParentOp(); loop;
       loop = loop->getParentOp())
    if (isa<LoopLikeOpInterface>(loop) && loop->isAncestor(later))
      loops.push_back(loop);
  if (!loops.empty())
    return true;
  for (Operation *ancestor = earlier; ancestor;
       ancestor = ancestor->getParentOp())
    if (Operation *inBlock =
            ancestor->getBlock()->findAncestorOpInBlock(*later))
      return ancestor->isBeforeInBlock(inBlock);
  return true;
}

MemoryFlow::MemoryFlow(triton::FuncOp kernel) {
  SmallVector<Operation *> writing, reading;
  kernel.walk([&](Operation *op) {
    bool writes = getWrittenValue(op) != nullptr;
    if (writes)
      writing.push_back(op);
    if (isa<triton::LoadOp>(op) || (writes && op->getNumResults()))
      reading.push_back(op);
  });
  for (Operation *write : writing)
    for (Operation *read : reading) {
      if (!mayAlias(write->getOperand(0), read->getOperand(0)))
        continue;
      SmallVector<Operation *> loops;
      if (!mayFollow(write, read, loops))
        continue;
      this->writes[read].push_back(write);
      this->reads[write].push_back(read);
    }
}

llvm::ArrayRef<Operation *> MemoryFlow::getWritesSeenBy(Operation *read) const {
  auto it = writes.find(read);
  return it == writes.end() ? llvm::ArrayRef<Operation *>() : it->second;
}

bool MemoryFlow::isRepeatable(Operation *op) const {
  if (isa<triton::LoadOp>(op))
    return getWritesSeenBy(op).empty();
  return op->getNumRegions() || isMemoryEffectFree(op);
}

llvm::ArrayRef<Operation *> MemoryFlow::getReadsOf(Operation *write) const {
  auto it = reads.find(write);
  return it == reads.end() ? llvm::ArrayRef<Operation *>() : it->second;
}
