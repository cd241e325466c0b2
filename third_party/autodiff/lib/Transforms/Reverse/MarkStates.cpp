//===- MarkStates.cpp - States that a backward may read back --------------===//
//
// A value that a loop carries and stores in every iteration, a state, can be
// loaded by the backward and needs no tape. That holds if no iteration or
// program stores to an element that another one has stored to (a check), and
// nothing else accesses the output.
//
// Two more things are proved. Memory may hold the state rounded: then the
// rounded one has to be good enough (StoredCopies.h). And a mask may exclude
// lanes: then these may only lead to lanes that are excluded.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/StoredCopies.h"
#include "autodiff/Analysis/StoredStates.h"
#include "autodiff/Support/Leaves.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MARKSTATES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct MarkStates : autodiff::impl::MarkStatesBase<MarkStates> {
  using MarkStatesBase::MarkStatesBase;

  void transform() override;
  void mark(scf::ForOp loop, unsigned index, const StoredCopies &copies);
  CheckAttr findCheck(triton::StoreOp store);

  triton::FuncOp kernel;
};
} // namespace

/// Whether lanes that `store` masks in all iterations only lead to themselves
/// and to stores that mask them.
static bool keepsToMask(scf::ForOp loop, unsigned index,
                        triton::StoreOp store) {
  Value mask = store.getMask();
  if (!mask)
    return true;
  if (!loop.isDefinedOutsideOfLoop(mask))
    return false;
  auto isLeftOut = [&](triton::StoreOp other) {
    SmallVector<Value> conditions;
    if (other.getMask())
      collectLeaves<arith::AndIOp>(other.getMask(), conditions);
    return other.getMask() == mask || llvm::is_contained(conditions, mask);
  };
  llvm::SetVector<Value> values;
  auto insertCarried = [&](unsigned place) {
    values.insert(loop.getRegionIterArg(place));
    values.insert(loop.getResult(place));
  };
  insertCarried(index);
  for (unsigned next = 0; next < values.size(); ++next)
    for (OpOperand &use : values[next].getUses()) {
      Operation *op = use.getOwner();
      if (op == loop.getBody()->getTerminator())
        insertCarried(use.getOperandNumber());
      else if (auto other = dyn_cast<triton::StoreOp>(op)) {
        if (use.get() != other.getValue() || !isLeftOut(other))
          return false;
      } else if (isMemoryEffectFree(op) &&
                 (op->hasTrait<OpTrait::Elementwise>() ||
                  isa<ResidualOp>(op))) {
        values.insert_range(op->getResults());
      } else {
        return false;
      }
    }
  return true;
}

/// The check that memory still has the stored value; null if that does not only
/// depend on addresses.
CheckAttr MarkStates::findCheck(triton::StoreOp store) {
  BlockArgument base = getBaseArgument(store.getPtr());
  if (!base || llvm::is_contained(repeated, base.getArgNumber()))
    return {};
  SmallVector<Operation *> stores;
  kernel.walk([&](triton::StoreOp other) {
    if (getBaseArgument(other.getPtr()) == base)
      stores.push_back(other);
  });
  if (mayBeAccessed(
          base, [&](Operation *op) { return !llvm::is_contained(stores, op); }))
    return {};
  std::optional<AccessSpace> space = AccessSpace::findFor(stores);
  if (!space)
    return {};
  return space->toCheck(CheckKind::Distinct, base.getArgNumber());
}

void MarkStates::mark(scf::ForOp loop, unsigned index,
                      const StoredCopies &copies) {
  BlockArgument carried = loop.getRegionIterArg(index);
  // Values that follow from the number of the iteration are not read.
  if (isPointer(carried.getType()) ||
      LinearForm::of(carried, {}, ScalarExpr::From::Memory))
    return;
  for (StoredState state : findStoredStates(loop, index)) {
    if (state.store->hasAttr(kStateAttr) ||
        !copies.mayStandIn(carried, carried, state.store) ||
        (!keepsToMask(loop, index, state.store) &&
         !mutation::isMade("states:read where a mask left them out")) ||
        !findPlace(loop, state.store.getPtr()))
      continue;
    if (CheckAttr check = findCheck(state.store)) {
      markState(state, index, check);
      return;
    }
  }
}

void MarkStates::transform() {
  kernel = getDifferentiated(getOperation());
  Activity activity(kernel, findWanted(kernel, allWanted, wanted),
                    findWithCotangents(kernel, allCotangents, cotangents));
  StoredCopies copies(kernel, activity);
  kernel.walk([&](scf::ForOp loop) {
    for (unsigned index = 0; index < loop.getNumRegionIterArgs(); ++index)
      mark(loop, index, copies);
  });
}
