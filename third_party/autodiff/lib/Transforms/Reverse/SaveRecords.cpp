//===- SaveRecords.cpp - Let the forward write what it records ------------===//
#include "autodiff/Builders/ProgramBuffers.h"

#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SAVERECORDS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct SaveRecords : autodiff::impl::SaveRecordsBase<SaveRecords> {
  using SaveRecordsBase::SaveRecordsBase;

  void transform() override;
  LogicalResult save(unsigned tape, ArrayRef<PopOp> pops);

  triton::FuncOp backward, forward;
};
} // namespace

constexpr StringLiteral kNeeded =
    "the backward needs what this reads from memory that the kernel changes, "
    "or decides by floats that it computes";

static PushOp findPush(triton::FuncOp kernel, unsigned tape) {
  PushOp found;
  kernel.walk([&](PushOp push) {
    if (push.getTape() == tape)
      found = push;
  });
  return found;
}

/// Gives the record of a value a buffer that the forward fills.
LogicalResult SaveRecords::save(unsigned tape, ArrayRef<PopOp> pops) {
  PushOp push = findPush(forward, tape);
  Type type = push.getValue().getType();
  if (!allowed || isPointer(type))
    return emitError(push.getLoc())
           << kNeeded
           << (allowed ? ", and it is a pointer; compute the offset instead"
                       : ", and the forward may not save it");
  ExprAttr entries = mostExecutions(push);
  if (!entries)
    return emitError(push.getLoc())
           << kNeeded
           << ", but how often it does is not known when the kernel is "
              "launched and not counted; run autodiff-count-trips first";
  unsigned index = countBuffers(backward);
  BufferAttr description = describeBuffer(
      BufferKind::Saved, "record" + std::to_string(tape), type, entries);
  lowerRecord(push, appendBuffer(forward, index, type, description), pops,
              appendBuffer(backward, index, type, description));
  return success();
}

void SaveRecords::transform() {
  backward = getBackward(getOperation());
  llvm::MapVector<unsigned, SmallVector<PopOp>> needed;
  backward.walk([&](PopOp pop) { needed[pop.getTape()].push_back(pop); });
  if (!needed.empty())
    forward = getOrCreateForward(getOperation());
  for (auto &[tape, pops] : needed)
    if (failed(save(tape, pops)))
      return signalPassFailure();
  getOperation().walk([](PushOp push) { push.erase(); });
}
