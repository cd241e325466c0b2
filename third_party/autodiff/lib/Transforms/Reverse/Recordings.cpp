//===- Recordings.cpp - What a backward records and reads back ------------===//
#include "Recordings.h"

#include "autodiff/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::autodiff;

static Recordings collect(triton::FuncOp backward) {
  Recordings recordings;
  backward.walk([&](Operation *op) {
    if (auto push = dyn_cast<PushOp>(op))
      recordings[push.getTape()].push = push;
    else if (auto pop = dyn_cast<PopOp>(op))
      recordings[pop.getTape()].pops.push_back(pop);
  });
  return recordings;
}

/// Removes pushes without pops; returns whether there were any.
static bool dropUnread(Recordings &recordings) {
  bool dropped = false;
  for (auto &[tape, recording] : recordings)
    if (recording.push && recording.pops.empty()) {
      recording.push.erase();
      dropped = true;
    }
  return dropped;
}

FailureOr<Recordings> mlir::autodiff::collectRead(
    triton::FuncOp backward,
    llvm::function_ref<LogicalResult(OpPassManager &)> run) {
  OpPassManager cleanup(triton::FuncOp::getOperationName());
  cleanup.addPass(createSimplify());
  cleanup.addPass(createCanonicalizerPass());
  Recordings recordings = collect(backward);
  while (dropUnread(recordings)) {
    if (failed(run(cleanup)))
      return failure();
    recordings = collect(backward);
  }
  for (auto &[tape, recording] : recordings)
    if (recording.push && !recording.loop())
      return recording.push.emitError("records outside of a loop");
  return recordings;
}
