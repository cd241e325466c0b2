//===- MarkLive.cpp - Where contributions are not zero --------------------===//
#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MARKLIVE
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct MarkLive : autodiff::impl::MarkLiveBase<MarkLive> {
  void transform() override;
};
} // namespace

void MarkLive::transform() {
  auto &all = getAnalysis<Contributions>();
  for (auto &[argument, use] : all.in(getBackward(getOperation()))) {
    SmallVector<ReachAttr> reach = all.findReaches(use.contributions);
    if (!reach.empty() && !mutation::isMade("live:nobody knows where"))
      PlanOp::getOrCreate(getOperation())
          .add<LiveOp>(LiveAttr::get(&getContext(), argument, reach));
  }
}
