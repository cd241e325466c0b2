//===- FinalStores.cpp - Stores that nothing overwrites -------------------===//
#include "autodiff/Analysis/FinalStores.h"

#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"

using namespace mlir;
using namespace mlir::autodiff;

ReasonOr<AccessSpace>
mlir::autodiff::findDistinct(ArrayRef<Operation *> stores, unsigned argument,
                             ArrayRef<unsigned> repeated) {
  auto goesThere = [&](Operation *op) {
    auto store = dyn_cast<triton::StoreOp>(op);
    BlockArgument base = store ? getBaseArgument(store.getPtr()) : nullptr;
    return base && base.getArgNumber() == argument;
  };
  if (stores.empty())
    return std::nullopt;
  if (llvm::is_contained(repeated, argument))
    return because(stores.front(),
                   "a check, that no element is stored to twice, failed at a "
                   "launch");
  for (Operation *store : stores)
    if (!goesThere(store))
      return because(store,
                     "`{0}` at {1} writes to it, or maybe to another "
                     "argument",
                     store->getName().getStringRef(), store);
  return AccessSpace::findFor(stores);
}

/// Whether a write adds to the memory's content.
static bool isSum(Operation *write) {
  auto atomic = dyn_cast<triton::AtomicRMWOp>(write);
  return atomic && isBlindSum(atomic);
}

/// Whether memory holds the written value afterwards, whatever was there
/// before. It does not for a maximum, if the old content is larger.
static bool isPlain(Operation *write) {
  auto atomic = dyn_cast<triton::AtomicRMWOp>(write);
  return isa<triton::StoreOp>(write) || (atomic && !selectsContent(atomic));
}

FinalStores::FinalStores(triton::FuncOp kernel, ArrayRef<unsigned> repeated) {
  SmallVector<Operation *> writes;
  kernel.walk([&](Operation *op) {
    if (getWrittenValue(op))
      writes.push_back(op);
  });
  llvm::DenseSet<Operation *> overwritten;
  for (BlockArgument argument : kernel.getArguments()) {
    SmallVector<Operation *> here =
        llvm::filter_to_vector(writes, [&](Operation *write) {
          return mayPointInto(getAccessedPointer(write), argument);
        });
    // A launch is only asked about outputs that the kernel does not read.
    auto isLoad = [](Operation *op) { return isa<triton::LoadOp>(op); };
    if (!mayBeAccessed(argument, isLoad) &&
        findDistinct(here, argument.getArgNumber(), repeated))
      continue;
    for (Operation *write : here)
      if (llvm::any_of(here, [&](Operation *later) {
            return !isSum(later) && mayRunAfter(later, write);
          }))
        overwritten.insert(write);
  }
  for (Operation *write : writes)
    if (isPlain(write) && !overwritten.contains(write))
      stores.insert(write);
}
