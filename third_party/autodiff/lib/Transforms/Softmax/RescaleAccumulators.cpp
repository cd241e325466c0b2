//===- RescaleAccumulators.cpp - Online softmax as plain sums -------------===//
//
// The loop of an online softmax rescales its sums with each new maximum. The
// copy that is differentiated uses the final maximum throughout
// (RescaledLoop.h), and its iterations do not depend on each other.
//
//===----------------------------------------------------------------------===//
#include "BlockMaxima.h"
#include "Maxima.h"
#include "Reframing.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/ResidualIds.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_RESCALEACCUMULATORS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct RescaleAccumulators
    : autodiff::impl::RescaleAccumulatorsBase<RescaleAccumulators> {
  void transform() override;
};
} // namespace

/// The residual of a loop's result, directly behind the loop; it is made if
/// there is none.
static ResidualOp nameResult(Value result, unsigned &nextId) {
  Operation *loop = result.getDefiningOp();
  if (ResidualOp residual = findName(result)) {
    residual->moveAfter(loop);
    return residual;
  }
  OpBuilder b(loop->getContext());
  b.setInsertionPointAfter(loop);
  auto residual = ResidualOp::create(b, loop->getLoc(), result, nextId++);
  result.replaceAllUsesExcept(residual.getResult(), residual);
  return residual;
}

/// Makes residuals of a loop's results, in the copy and in the user's kernel:
/// first of sums of which each maximum has one, then of the maximum, which the
/// backward may use even if the forward does not.
static void nameResults(const RescaledLoop &found, scf::ForOp original,
                        unsigned &nextId) {
  scf::ForOp loop = found.loop;
  auto name = [&](unsigned index) {
    unsigned id = nextId;
    nameResult(loop.getResult(index), nextId);
    return nameResult(original.getResult(index), id);
  };
  Type type = found.getCurrent().getType();
  for (unsigned index = 0; index < loop.getNumResults(); ++index)
    if (found.accumulators.contains(index) &&
        loop.getResult(index).getType() == type)
      name(index);
  name(found.maximum).setPinned(true);
}

void RescaleAccumulators::transform() {
  triton::FuncOp primal = getPrimal(getOperation());
  triton::FuncOp kernel = getOrCreateDifferentiated(getOperation());
  unsigned nextId = getNextResidualId(primal);
  for (auto [loop, original] :
       llvm::zip_equal(getLoops(kernel), getLoops(primal))) {
    raiseCarriedMaxima(loop);
    useRunningMaxima(loop);
    for (auto found = RescaledLoop::match(loop); found;
         found = RescaledLoop::match(loop, found->maximum + 1))
      nameResults(*found, original, nextId);
  }
  Reframing reframing;
  for (scf::ForOp loop : getLoops(kernel))
    reframing.rewrite(loop, [&](const RescaledLoop &found) -> Value {
      scf::ForOp of = found.loop;
      return nameResult(of.getResult(found.maximum), nextId).getResult();
    });
  reframing.markAttained();
}
