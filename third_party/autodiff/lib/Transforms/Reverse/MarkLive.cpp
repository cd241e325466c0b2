//===- MarkLive.cpp - Where contributions are not zero --------------------===//
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MARKLIVE
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;
using llvm::json::Object;

namespace {
struct MarkLive : autodiff::impl::MarkLiveBase<MarkLive> {
  void runOnOperation() override;
};
} // namespace

/// What an accumulation reaches with anything but zeros, as the plan describes
/// it; null if the launch does not know.
static llvm::json::Value findReach(AccumulateOp op, Operation *load) {
  OpBuilder b(op);
  Value live = findLiveLanes(Tile(b, op.getLoc(), op.getValue()));
  // What was built for the condition is dead then, and goes with the cleanup.
  std::optional<AccessSpace> space =
      AccessSpace::reachOf(op, live ? ArrayRef(live) : ArrayRef<Value>());
  if (!space && load)
    space = AccessSpace::reachOf(load);
  if (!space)
    return nullptr;
  return space->toReach();
}

void MarkLive::runOnOperation() {
  triton::FuncOp primal = getPrimal(getOperation());
  triton::FuncOp backward = getBackward(getOperation());
  if (!primal || !backward)
    return;
  llvm::DenseMap<int64_t, Operation *> loads;
  primal.walk([&](Operation *op) {
    if (auto site = op->getAttrOfType<IntegerAttr>(kSiteAttr))
      loads[site.getInt()] = op;
  });
  SmallVector<AccumulateOp> ops;
  backward.walk([&](AccumulateOp op) { ops.push_back(op); });
  llvm::MapVector<unsigned, Array> reaches;
  for (AccumulateOp op : ops)
    reaches[op.getArgument()].push_back(
        findReach(op, loads.lookup(op.getSite())));
  Array live;
  for (auto &[argument, spaces] : reaches)
    live.push_back(
        Object{{"argument", argument}, {"reach", std::move(spaces)}});
  if (!live.empty())
    getOperation()->setAttr(kLiveAttr,
                            toAttribute(&getContext(), std::move(live)));
}
