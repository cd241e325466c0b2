//===- CountTrips.cpp - A kernel that counts iterations -------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_COUNTTRIPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct CountTrips : autodiff::impl::CountTripsBase<CountTrips> {
  void transform() override;
};
} // namespace

/// The number of iterations of one run of `op`, computed behind it.
static Value countOnce(OpBuilder &b, Operation *op) {
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return loop.getResult(*findCounter(loop));
  auto loop = cast<scf::ForOp>(op);
  return countIterations(b, op->getLoc(), loop.getLowerBound(),
                         loop.getUpperBound(), loop.getStep(),
                         loop.getUnsignedCmp());
}

/// counters[n] = max(counters[n], iterations). If an i32 overflowed, memory
/// would not suffice, either.
static void recordMost(Operation *loop, Value counters) {
  OpBuilder b(loop->getContext());
  b.setInsertionPointAfter(loop);
  Location loc = loop->getLoc();
  Value count = countOnce(b, loop);
  if (!count.getType().isInteger(32)) {
    Value most = arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(count.getType(), INT32_MAX));
    count = arith::TruncIOp::create(
        b, loc, b.getI32Type(), arith::MinUIOp::create(b, loc, count, most));
  }
  Value index = arith::ConstantOp::create(
      b, loc, loop->getAttrOfType<IntegerAttr>(kCounterAttr));
  Value pointer =
      triton::AddPtrOp::create(b, loc, counters.getType(), counters, index);
  Value always = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  auto atomic = triton::AtomicRMWOp::create(
      b, loc, b.getI32Type(), triton::RMWOp::MAX, pointer, count, always,
      triton::MemSemantic::RELAXED, triton::MemSyncScope::GPU);
  atomic->setAttr(kCounterAttr, loop->getAttr(kCounterAttr));
  loop->removeAttr(kCounterAttr);
}

/// Keeps only operations that can be run on the memory before the forward.
static void dropEffects(triton::FuncOp primal, triton::FuncOp kernel) {
  MemoryFlow memory(primal);
  llvm::SmallVector<bool> drop;
  primal.walk([&](Operation *op) {
    Operation *spin = memory.getSynchronization().findSpin(op);
    drop.push_back(spin ? spin == op
                        : !memory.isRepeatable(op) &&
                              !op->hasTrait<OpTrait::IsTerminator>());
  });
  SmallVector<Operation *> dropped;
  unsigned next = 0;
  kernel.walk([&](Operation *op) {
    if (drop[next++])
      dropped.push_back(op);
  });
  OpBuilder b(kernel.getContext());
  for (Operation *op : dropped) {
    b.setInsertionPoint(op);
    for (Value result : op->getResults())
      result.replaceAllUsesWith(
          UnavailableOp::create(b, op->getLoc(), result.getType()));
    op->erase();
  }
}

void CountTrips::transform() {
  triton::FuncOp primal = getPrimal(getOperation());
  Builder builder(&getContext());
  int counters = 0;
  Synchronization synchronization(primal);
  WalkResult walk = primal.walk([&](LoopLikeOpInterface loop) {
    if (mostIterations(loop) || synchronization.findSpin(loop))
      return WalkResult::advance();
    auto repeated = dyn_cast<scf::WhileOp>(loop.getOperation());
    if (repeated && !findCounter(repeated)) {
      repeated.emitError(getArgument())
          << " needs a loop that counts its iterations (autodiff-normalize "
             "makes it so)";
      return WalkResult::interrupt();
    }
    loop->setAttr(kCounterAttr, builder.getI32IntegerAttr(counters++));
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return signalPassFailure();
  if (counters == 0)
    return;

  triton::FuncOp kernel = derive(primal, "count");
  dropEffects(primal, kernel);
  BlockArgument memory =
      appendOperand(kernel, triton::PointerType::get(builder.getI32Type(), 1),
                    OperandAttr::get(&getContext(), OperandKind::Counters, 0));
  SmallVector<Operation *> loops;
  kernel.walk([&](LoopLikeOpInterface loop) {
    if (loop->hasAttr(kCounterAttr))
      loops.push_back(loop);
  });
  for (Operation *loop : loops)
    recordMost(loop, memory);
}
