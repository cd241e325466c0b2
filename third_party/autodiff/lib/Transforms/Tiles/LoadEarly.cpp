//===- LoadEarly.cpp - Loads that do not wait for reductions --------------===//
//
// In a reduction, the warps of a program wait for each other, and compilers do
// not move a load above it: memory idles. In a backward, all loads of the
// adjoint are behind the reductions of the recomputed forward. Those that do
// not depend on a reduction are hoisted above it.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LOADEARLY
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct LoadEarly : autodiff::impl::LoadEarlyBase<LoadEarly> {
  void runOnOperation() override;
};
} // namespace

static bool isReduction(Operation *op) {
  return isa<triton::ReduceOp, triton::ScanOp>(op);
}

/// Whether a load must not move above `op`: its result would be live during a
/// loop, or memory may be different there.
static bool isFence(Operation *op) {
  return (op->getNumRegions() != 0 && !isReduction(op)) || mayWrite(op);
}

/// The operations of its block that `load` depends on.
static SetVector<Operation *> collectNeeded(triton::LoadOp load) {
  SetVector<Operation *> needed;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.filter = [&](Operation *op) {
    return op->getBlock() == load->getBlock();
  };
  (void)getBackwardSlice(load.getOperation(), &needed, options);
  return needed;
}

/// The first reduction in front of `load` that it does not depend on; null if
/// there is none.
static Operation *findReduction(triton::LoadOp load) {
  SetVector<Operation *> needed = collectNeeded(load);
  Operation *first = nullptr;
  for (Operation *op = load->getPrevNode(); op; op = op->getPrevNode()) {
    if (isFence(op) || (isReduction(op) && needed.contains(op)))
      break;
    if (isReduction(op))
      first = op;
  }
  return first;
}

void LoadEarly::runOnOperation() {
  triton::FuncOp kernel = getOperation();
  if (!isBackward(kernel))
    return;
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance(kernel);
  for (auto load : llvm::to_vector(kernel.getOps<triton::LoadOp>())) {
    Operation *reduction = findReduction(load);
    if (reduction && succeeded(moveOperationDependencies(rewriter, load,
                                                         reduction, dominance)))
      rewriter.moveOpBefore(load, reduction);
  }
}
