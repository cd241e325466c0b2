//===- RescaleAccumulators.cpp - Online softmax as plain sums -------------===//
//
// The loop of an online softmax changes the frame of its sums with each new
// maximum. The copy that is differentiated uses the final one throughout
// (RescaledLoop.h), and its iterations stand alone.
//
//===----------------------------------------------------------------------===//
#include "BlockMaxima.h"
#include "Reframing.h"
#include "ResidualIds.h"
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
  void runOnOperation() override;
};
} // namespace

/// The maximum after the loop as a residual of its own, right after the loop.
static ResidualOp finalMaximum(Value result, unsigned &nextId) {
  Operation *loop = result.getDefiningOp();
  for (Operation *user : result.getUsers())
    if (auto residual = dyn_cast<ResidualOp>(user)) {
      residual->moveAfter(loop);
      return residual;
    }
  OpBuilder b(loop->getContext());
  b.setInsertionPointAfter(loop);
  auto residual = ResidualOp::create(b, loop->getLoc(), result, nextId++);
  result.replaceAllUsesExcept(residual.getResult(), residual);
  return residual;
}

static SmallVector<scf::ForOp> loopsOf(triton::FuncOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  return loops;
}

void RescaleAccumulators::runOnOperation() {
  triton::FuncOp primal = getPrimal(getOperation());
  if (!primal)
    return;
  OpBuilder builder(primal);
  builder.setInsertionPointAfter(primal);
  auto kernel = cast<triton::FuncOp>(builder.clone(*primal));
  kernel.setSymName((primal.getSymName() + "_framed").str());
  kernel->setAttr(kRoleAttr, builder.getStringAttr("differentiated"));

  unsigned nextId = getNextResidualId(primal);
  for (auto [loop, original] :
       llvm::zip_equal(loopsOf(kernel), loopsOf(primal))) {
    useRunningMaxima(loop);
    for (auto found = RescaledLoop::match(loop); found;
         found = RescaledLoop::match(loop, found->maximum + 1)) {
      unsigned id = nextId;
      finalMaximum(loop.getResult(found->maximum), nextId);
      // The backward may use a maximum that nothing in the forward does.
      finalMaximum(original.getResult(found->maximum), id).setPinned(true);
    }
  }
  Reframing reframing;
  for (scf::ForOp loop : loopsOf(kernel))
    reframing.rewrite(loop, [&](const RescaledLoop &found) -> Value {
      scf::ForOp of = found.loop;
      return finalMaximum(of.getResult(found.maximum), nextId).getResult();
    });
  reframing.markAttained();
}
