//===- CarrySums.cpp - Means and logarithms of sums, as plain sums --------===//
//
// A loop may carry a plain sum in another form: the logarithm of a sum, or a
// sum that is always divided by another (attention whose output is normalized
// after each block). The copy that is differentiated carries the sums, so that
// its iterations do not depend on each other.
//
//===----------------------------------------------------------------------===//
#include "LogSum.h"
#include "RunningMean.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/ResidualIds.h"
#include "autodiff/Transforms/Passes.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_CARRYSUMS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct CarrySums : autodiff::impl::CarrySumsBase<CarrySums> {
  void transform() override;
  void fixLevels(scf::ForOp loop);

  triton::FuncOp primal, kernel;
  SmallVector<LogSum> fixed;
};
} // namespace

/// Makes the logarithms of sums relative to their final values.
void CarrySums::fixLevels(scf::ForOp loop) {
  for (unsigned index = 0; index < loop.getNumResults(); ++index) {
    auto found = LogSum::match(loop, index);
    if (found)
      found = found->fixLevel(getNextResidualId(kernel), fixed);
    if (!found)
      continue;
    loop = found->loop;
    fixed.push_back(*found);
    // The backward uses it, even if the forward does not.
    auto last = found->level.getDefiningOp<ResidualOp>();
    if (ResidualOp there = findResidual(primal, last.getId()))
      there.setPinned(true);
  }
}

/// Calls `visit` for every carried value of the loops of a kernel.
static void walkCarried(triton::FuncOp kernel,
                        llvm::function_ref<void(scf::ForOp, unsigned)> visit) {
  for (scf::ForOp loop : getLoops(kernel))
    for (unsigned index = 0; index < loop.getNumResults(); ++index)
      visit(loop, index);
}

/// Erases operations that only the logarithms needed; no residual may be needed
/// yet.
static void eraseDead(triton::FuncOp kernel) {
  kernel.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (isOpTriviallyDead(op) && !isa<ResidualOp>(op))
      op->erase();
  });
}

void CarrySums::transform() {
  primal = getPrimal(getOperation());
  kernel = getDifferentiated(getOperation());
  if (kernel == primal)
    return;
  fixed.clear();
  for (scf::ForOp loop : getLoops(kernel))
    fixLevels(loop);
  walkCarried(kernel, [&](scf::ForOp loop, unsigned index) {
    if (auto found = LogSum::match(loop, index))
      found->carrySum(getNextResidualId(kernel));
  });
  eraseDead(kernel);
  RunningMean::Quotients quotients;
  walkCarried(kernel, [&](scf::ForOp loop, unsigned index) {
    if (auto found = RunningMean::match(loop, index))
      found->carrySums(quotients);
  });
}
