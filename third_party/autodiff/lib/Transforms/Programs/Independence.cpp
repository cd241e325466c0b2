//===- Independence.cpp - Iterations in any order -------------------------===//
#include "Independence.h"

#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Rules/Mutation.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::autodiff;

Value mlir::autodiff::getMask(Operation *op) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<triton::LoadOp, triton::StoreOp, triton::AtomicRMWOp>(
          [](auto access) { return access.getMask(); })
      .Default(Value());
}

bool mlir::autodiff::isElementwise(Operation *op) {
  auto isIndex = [](Type type) { return getElementTypeOrSelf(type).isIndex(); };
  return op->hasTrait<OpTrait::Elementwise>() && op->getNumRegions() == 0 &&
         !isa<triton::ElementwiseInlineAsmOp>(op) &&
         llvm::none_of(op->getOperandTypes(), isIndex) &&
         llvm::none_of(op->getResultTypes(), isIndex);
}

bool mlir::autodiff::mayRunInAnyOrder(Operation *repeating,
                                      Operation *repeated) {
  SmallVector<Value> loaded, stored, added;
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
             !isa<triton::FuncOp>(op) && !isMemoryEffectFree(op))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return !walk.wasInterrupted() && llvm::all_of(stored, getBaseArgument) &&
         !mayAlias(stored, added) && !mayAlias(added, loaded) &&
         (!mayAlias(stored, loaded) ||
          mutation::isMade("spread:stores are loaded"));
}

SmallVector<triton::StoreOp> mlir::autodiff::collectStores(Operation *op) {
  SmallVector<triton::StoreOp> stores;
  op->walk([&](triton::StoreOp store) { stores.push_back(store); });
  return stores;
}

std::optional<SmallVector<CheckAttr>>
mlir::autodiff::checkStores(ArrayRef<triton::StoreOp> stores) {
  llvm::MapVector<unsigned, SmallVector<Operation *>> byArgument;
  for (triton::StoreOp store : stores)
    byArgument[getBaseArgument(store.getPtr()).getArgNumber()].push_back(store);
  SmallVector<CheckAttr> checks;
  for (auto &[argument, accesses] : byArgument) {
    std::optional<AccessSpace> space = AccessSpace::ofAll(accesses);
    if (!space)
      return std::nullopt;
    if (!mutation::isMade("spread:no check of stores"))
      checks.push_back(space->toCheck(CheckKind::Distinct, argument));
  }
  return checks;
}
