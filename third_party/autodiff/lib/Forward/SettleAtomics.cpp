//===- SettleAtomics.cpp - Whose value memory holds in the end ------------===//
//
// The kernel stores again what atomic maxima, minima and exchanges have left:
// the value that is there. So it changes nothing, and its tangents are those of
// the kernel that it runs after.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Forward/Passes.h"

#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/Ties.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/SelectingAtomics.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/UserName.h"
#include "autodiff/Transforms/Needs.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SETTLEATOMICS
#include "autodiff/Forward/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// An error if it cannot be told afterwards whose value `op` has left.
static LogicalResult check(triton::AtomicRMWOp op) {
  for (BlockArgument base : getBaseArguments(withoutBitcast(op.getPtr())))
    if (failed(checkSelects(op, base)))
      return failure();
  if (!isReproducible(withoutBitcast(op.getVal())) &&
      !mutation::isMade("atomics:values that are rounded otherwise"))
    return op.emitError()
           << "no forward-mode rule for " << spellForUser(op)
           << " of this value: which one memory holds in the end is told by "
              "its bits, but this one may be rounded otherwise when it is "
              "computed again; store such values to a tensor, and combine "
              "them in another kernel";
  if (!op->use_empty())
    return op.emitError() << "no forward-mode rule for " << spellForUser(op)
                          << ", whose result is used: what that was cannot be "
                             "known afterwards";
  return success();
}

/// Stores the value where memory holds it.
static void settle(triton::AtomicRMWOp op) {
  Value pointer = withoutBitcast(op.getPtr());
  Value value = withoutBitcast(op.getVal());
  OpBuilder b(op);
  Value isFinal = createIsFinal(b, op.getLoc(), pointer, value, op.getMask());
  triton::StoreOp::create(b, op.getLoc(), pointer, value, isFinal)
      ->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op.erase();
}

/// An error if the kernel loads what it changed when it ran.
static LogicalResult
checkUnchanged(triton::FuncOp kernel,
               const llvm::SetVector<BlockArgument> &written) {
  WalkResult walk = kernel.walk([&](triton::LoadOp load) {
    if (llvm::none_of(getBaseArguments(load.getPtr()), [&](BlockArgument base) {
          return written.contains(base);
        }))
      return WalkResult::advance();
    if (mutation::isMade("atomics:loads of what has changed"))
      return WalkResult::advance();
    load.emitError(
        "no forward-mode rule for an atomic maximum, minimum or exchange in a "
        "kernel that also changes what it loads here: whose value memory holds "
        "in the end is found afterwards; write to a tensor of its own");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

namespace {
struct SettleAtomics : autodiff::impl::SettleAtomicsBase<SettleAtomics> {
  void runOnOperation() override;
};
} // namespace

void SettleAtomics::runOnOperation() {
  if (failed(checkNeeds(getArgument(), getOperation(), {Need::Kernel})))
    return signalPassFailure();
  triton::FuncOp kernel = getDifferentiated(getOperation());
  SmallVector<triton::AtomicRMWOp> selections;
  SmallVector<Operation *> effects;
  llvm::SetVector<BlockArgument> written;
  for (Value pointer : getWrittenPointers(kernel))
    written.insert_range(getBaseArguments(pointer));
  kernel.walk([&](Operation *op) {
    auto atomic = dyn_cast<triton::AtomicRMWOp>(op);
    if (atomic && selectsFloats(atomic))
      selections.push_back(atomic);
    else if (!op->getNumRegions() && !op->hasTrait<OpTrait::IsTerminator>() &&
             !isMemoryEffectFree(op) && !isa<triton::LoadOp>(op))
      effects.push_back(op);
  });
  for (Operation *op : effects) {
    if (!op->use_empty()) {
      op->emitError("no forward-mode rule for an atomic maximum, minimum or "
                    "exchange in a kernel with this operation, which cannot be "
                    "done again");
      return signalPassFailure();
    }
    op->erase();
  }
  IRRewriter rewriter(&getContext());
  (void)runRegionDCE(rewriter, kernel->getRegions());
  if (failed(checkUnchanged(kernel, written)) ||
      llvm::any_of(selections, [](triton::AtomicRMWOp selection) {
        return failed(check(selection));
      }))
    return signalPassFailure();
  llvm::for_each(selections, settle);
  triton::FuncOp primal = getPrimal(getOperation());
  primal.setSymName((primal.getSymName() + "_settled").str());
}
