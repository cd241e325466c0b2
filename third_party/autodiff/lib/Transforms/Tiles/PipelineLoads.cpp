//===- PipelineLoads.cpp - Loops that only wait for memory read ahead -----===//
#include "autodiff/Analysis/Costs.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/Registers.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_PIPELINELOADS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// The pointers that a loop writes through.
static SmallVector<Value> collectWritten(scf::ForOp loop) {
  SmallVector<Value> written;
  loop.getBody()->walk([&](Operation *op) {
    if (op->getNumRegions() == 0 && mayWrite(op))
      llvm::copy_if(op->getOperands(), std::back_inserter(written),
                    [](Value v) { return isPointer(v.getType()); });
  });
  return written;
}

/// Whether Triton may load for later iterations. Triton does not check whether
/// memory changes meanwhile, has its own rules for loops of products, and does
/// not pipeline outer loops.
static bool isPipelinable(scf::ForOp loop) {
  SmallVector<Value> written = collectWritten(loop);
  WalkResult walk = loop.getBody()->walk([&](Operation *op) {
    bool isFine = !isa<LoopLikeOpInterface, triton::DotOp>(op);
    if (auto load = dyn_cast<triton::LoadOp>(op))
      isFine = !mayAlias(load.getPtr(), written);
    else if (op->getNumRegions() == 0 && !isMemoryEffectFree(op))
      isFine = isa<triton::StoreOp, triton::AtomicRMWOp>(op);
    return isFine ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walk.wasInterrupted();
}

/// Bytes of tiles that an iteration loads.
static double bytesLoaded(scf::ForOp loop) {
  double bytes = 0;
  for (auto load : loop.getBody()->getOps<triton::LoadOp>())
    if (isa<RankedTensorType>(load.getType()))
      bytes += bytesOf(load.getType());
  return bytes;
}

namespace {
struct PipelineLoads : autodiff::impl::PipelineLoadsBase<PipelineLoads> {
  void runOnOperation() override {
    triton::FuncOp kernel = getOperation();
    if (!isBackward(kernel))
      return;
    const Target &target = Target::of(kernel);
    // If they fit, a processor runs at least two programs.
    int64_t programs =
        std::min<int64_t>(programsFor(target, countRegisters(kernel)).most, 2);
    kernel.walk([&](scf::ForOp loop) {
      double bytes = bytesLoaded(loop);
      if (bytes == 0 || loop->hasAttr(kStagesAttr) || !isPipelinable(loop))
        return;
      int stages =
          std::clamp(1 + static_cast<int>(std::ceil(target.traffic.onItsWay /
                                                    (programs * bytes))),
                     Target::kFewestStages, Target::kMostStages);
      if ((stages - 1) * bytes <= target.traffic.mostAhead)
        loop->setAttr(kStagesAttr,
                      Builder(kernel.getContext()).getI32IntegerAttr(stages));
    });
  }
};
} // namespace
