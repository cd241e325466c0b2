//===- HeldLoops.cpp - Loops that run once and stay loops -----------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_HOLDLOOPS
#define GEN_PASS_DEF_RELEASELOOPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("hold-loops");

/// Whether a loop runs at most once, from where the program says.
static bool isSingleBlock(scf::ForOp loop) {
  std::optional<ScalarExpr> start = ScalarExpr::of(loop.getLowerBound());
  std::optional<LinearForm> lower = LinearForm::of(loop.getLowerBound());
  std::optional<LinearForm> upper = LinearForm::of(loop.getUpperBound());
  std::optional<ScalarExpr> step = ScalarExpr::of(loop.getStep());
  if (!start || !start->dependsOnProgramId() || !lower || !upper || !step)
    return false;
  LinearForm span = *upper - *lower;
  std::optional<int64_t> length = span.constant.getConstant();
  std::optional<int64_t> width = step->getConstant();
  return span.isConstant() && length && width && *length <= *width;
}

namespace {
struct HoldLoops : autodiff::impl::HoldLoopsBase<HoldLoops> {
  void runOnOperation() override;
};

struct ReleaseLoops : autodiff::impl::ReleaseLoopsBase<ReleaseLoops> {
  void runOnOperation() override {
    getOperation().walk([](HeldOp held) {
      held.getResult().replaceAllUsesWith(held.getValue());
      held.erase();
    });
  }
};
} // namespace

void HoldLoops::runOnOperation() {
  SmallVector<scf::ForOp> loops = getLoops(getOperation());
  for (scf::ForOp loop : loops) {
    bool hasPeer = llvm::any_of(loops, [&](scf::ForOp other) {
      return other != loop &&
             ScalarExpr::of(other.getStep()) == ScalarExpr::of(loop.getStep());
    });
    if (!isSingleBlock(loop))
      continue;
    if (!hasPeer) {
      kRemarks.missed(loop,
                      "no other loop goes through such blocks: none has its "
                      "step");
      continue;
    }
    kRemarks.passed(loop,
                    "kept as a loop, though it has one iteration: others go "
                    "through such blocks, too");
    OpBuilder b(loop);
    loop.setUpperBound(
        HeldOp::create(b, loop.getLoc(), loop.getUpperBound()).getResult());
  }
}
