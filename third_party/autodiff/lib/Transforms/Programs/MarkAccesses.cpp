//===- MarkAccesses.cpp - Which elements of arguments a kernel touches ----===//
#include "autodiff/Analysis/AccessSpaces.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MARKACCESSES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct MarkAccesses : autodiff::impl::MarkAccessesBase<MarkAccesses> {
  void transform() override;
};
} // namespace

void MarkAccesses::transform() {
  // The plan is about the user's launch, not a rearranged one.
  if (PlanOp plan = PlanOp::of(getOperation());
      plan && (!plan.getItems<AccessedOp>().empty() ||
               !plan.getItems<RearrangedOp>().empty()))
    return;
  auto &spaces = getAnalysis<AccessSpaces>();
  llvm::MapVector<unsigned, llvm::SetVector<ReachAttr>> byArgument;
  getPrimal(getOperation()).walk([&](Operation *op) {
    Value pointer = getAccessedPointer(op);
    if (!pointer)
      return;
    ReasonOr<AccessSpace> space = spaces.reachOf(op);
    // From one of several arguments, nobody knows from where.
    bool isKnown = space && getBaseArgument(pointer);
    for (BlockArgument base : getBaseArguments(pointer))
      byArgument[base.getArgNumber()].insert(isKnown ? space->toReach()
                                                     : ReachAttr());
  });
  for (auto &[argument, reach] : byArgument)
    PlanOp::getOrCreate(getOperation())
        .add<AccessedOp>(
            AccessedAttr::get(&getContext(), argument, reach.getArrayRef()));
}
