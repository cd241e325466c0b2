//===- MarkLive.cpp - Where contributions are not zero --------------------===//
#include "autodiff/Analysis/AccessSpaces.h"
#include "autodiff/Analysis/ArgumentUses.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"

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

/// What a load reaches; null if the launch does not know.
static ReachAttr findReach(Operation *load, AccessSpaces &spaces) {
  if (std::optional<AccessSpace> space = spaces.reachOf(load))
    return space->toReach();
  return {};
}

void MarkLive::transform() {
  triton::FuncOp kernel = getDifferentiated(getOperation());
  triton::FuncOp backward = getBackward(getOperation());
  llvm::DenseMap<unsigned, Operation *> sites = collectSites(kernel);
  for (auto &[argument, use] : collectUses(backward)) {
    llvm::SetVector<Operation *> loads;
    for (AccumulateOp op : use.accumulates)
      loads.insert(sites.lookup(op.getSite()));
    SmallVector<ReachAttr> reach;
    for (Operation *load : loads)
      reach.push_back(findReach(load, getAnalysis<AccessSpaces>()));
    if (!reach.empty() && !mutation::isMade("live:nobody knows where"))
      PlanOp::getOrCreate(getOperation())
          .add<LiveOp>(LiveAttr::get(&getContext(), argument, reach));
  }
}
