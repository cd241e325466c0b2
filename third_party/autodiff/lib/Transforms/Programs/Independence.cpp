//===- Independence.cpp - Iterations in any order -------------------------===//
#include "Independence.h"

#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Support/Mutation.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::isElementwise(Operation *op) {
  auto isIndex = [](Type type) { return getElementTypeOrSelf(type).isIndex(); };
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumRegions() == 0 &&
         !isa<triton::ElementwiseInlineAsmOp>(op) &&
         llvm::none_of(op->getOperandTypes(), isIndex) &&
         llvm::none_of(op->getResultTypes(), isIndex);
}

bool mlir::autodiff::mayRunInAnyOrder(Operation *repeating,
                                      Operation *repeated) {
  return !findDependence(repeating, repeated);
}

Obstacle mlir::autodiff::findDependence(Operation *repeating,
                                        Operation *repeated) {
  SmallVector<Value> loaded, stored, added;
  Operation *other = nullptr;
  WalkResult walk = repeated->walk([&](Operation *op) {
    auto load = dyn_cast<triton::LoadOp>(op);
    auto atomic = dyn_cast<triton::AtomicRMWOp>(op);
    bool isInside = repeating->isProperAncestor(op);
    if (load && !load.getIsVolatile())
      loaded.push_back(load.getPtr());
    else if (isa<triton::StoreOp>(op) && isInside)
      stored.push_back(op->getOperand(0));
    else if (atomic && isInside && isBlindSum(atomic))
      added.push_back(atomic.getPtr());
    else if (!op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() &&
             !op->hasTrait<OpTrait::IsTerminator>() &&
             !isa<triton::FuncOp>(op) && !isMemoryEffectFree(op)) {
      other = op;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return because(other,
                   "`{0}` at {1} does more to memory than loading, storing "
                   "and adding",
                   other->getName().getStringRef(), other);
  for (Value pointer : stored)
    if (!getBaseArgument(pointer))
      return because(pointer,
                     "it is not known which argument is stored to at {0}",
                     pointer.getLoc());
  if (mayAlias(stored, added) || mayAlias(added, loaded))
    return because(repeating, "what is added to atomically is also loaded or "
                              "stored to");
  if (mayAlias(stored, loaded) && !mutation::isMade("spread:stores are loaded"))
    return because(repeating, "what is stored may be loaded by another program "
                              "or iteration");
  return std::nullopt;
}

SmallVector<triton::StoreOp> mlir::autodiff::collectStores(Operation *op) {
  SmallVector<triton::StoreOp> stores;
  op->walk([&](triton::StoreOp store) { stores.push_back(store); });
  return stores;
}

ReasonOr<SmallVector<CheckAttr>>
mlir::autodiff::checkStores(ArrayRef<triton::StoreOp> stores) {
  llvm::MapVector<unsigned, SmallVector<Operation *>> byArgument;
  for (triton::StoreOp store : stores)
    byArgument[getBaseArgument(store.getPtr()).getArgNumber()].push_back(store);
  SmallVector<CheckAttr> checks;
  for (auto &[argument, accesses] : byArgument) {
    ReasonOr<AccessSpace> space = AccessSpace::ofAll(accesses);
    if (!space)
      return because(accesses.front(),
                     "programs may store to the same element at {0}: {1}",
                     accesses.front(), space.why());
    if (!mutation::isMade("spread:no check of stores"))
      checks.push_back(space->toCheck(CheckKind::Distinct, argument));
  }
  return checks;
}
