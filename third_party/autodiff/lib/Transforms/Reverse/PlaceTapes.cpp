//===- PlaceTapes.cpp - Give the tapes that are read a place in memory ---===//
#include "Recordings.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/ProgramBuffers.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_PLACETAPES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct PlaceTapes : autodiff::impl::PlaceTapesBase<PlaceTapes> {
  void runOnOperation() override;
  LogicalResult lowerAll();
  LogicalResult lower(unsigned index, Recording &recording);
  void addBarriers(Operation *loop);

  triton::FuncOp backward;
};
} // namespace

/// All threads of a program see the whole tape, and it is only reused when all
/// have read it.
void PlaceTapes::addBarriers(Operation *loop) {
  OpBuilder builder(loop);
  if (loop->getParentOfType<LoopLikeOpInterface>())
    gpu::BarrierOp::create(builder, loop->getLoc());
  builder.setInsertionPointAfter(loop);
  gpu::BarrierOp::create(builder, loop->getLoc());
}

LogicalResult PlaceTapes::lower(unsigned index, Recording &recording) {
  PushOp push = recording.push;
  Operation *loop = recording.loop();
  Type type = push.getValue().getType();
  if (isPointer(type))
    return loop->emitError("this loop carries a pointer that does not advance "
                           "by the same amount in every iteration; compute the "
                           "offset from the loop variable instead");
  if (!push.getEntries())
    return loop->emitError(
        "the backward needs what this loop carries between iterations, but "
        "how many iterations there are is not known when the kernel is "
        "launched and not counted; run autodiff-count-trips first");

  std::string name = "tape" + std::to_string(index);
  BlockArgument buffer = appendBuffer(
      backward, index, type,
      describeBuffer(BufferKind::Tape, name, type, push.getEntriesAttr()));
  nameBuffer(buffer, BufferKind::Tape, push.getValue());
  lowerRecord(push, buffer, recording.pops, buffer);
  return success();
}

LogicalResult PlaceTapes::lowerAll() {
  FailureOr<Recordings> recordings =
      collectRead(backward, [&](OpPassManager &pipeline) {
        return runPipeline(pipeline, backward);
      });
  if (failed(recordings))
    return failure();
  unsigned buffers = 0;
  llvm::SetVector<Operation *> loops;
  for (auto &[tape, recording] : *recordings) {
    if (!recording.push)
      continue; // the forward records it
    loops.insert(recording.loop());
    if (failed(lower(buffers++, recording)))
      return failure();
  }
  for (Operation *loop : loops)
    addBarriers(loop);
  return success();
}

void PlaceTapes::runOnOperation() {
  for (triton::FuncOp each : getBackwards(getOperation())) {
    backward = each;
    if (failed(lowerAll()))
      return signalPassFailure();
  }
}
