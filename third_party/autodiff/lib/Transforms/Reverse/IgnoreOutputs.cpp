//===- IgnoreOutputs.cpp - Outputs that no gradient comes from ------------===//
//
// A backward does not need values of outputs without a cotangent, and values
// that only these depend on have no derivative. Nor does it need the barriers
// between a program's threads. The forward stores and waits as before.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_IGNOREOUTPUTS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct IgnoreOutputs : autodiff::impl::IgnoreOutputsBase<IgnoreOutputs> {
  using IgnoreOutputsBase::IgnoreOutputsBase;

  void transform() override;
};
} // namespace

/// Whether `write` can only change arguments that are not among `outputs`.
static bool missesAll(Operation *write, const ArgumentSet &outputs) {
  SmallVector<BlockArgument> bases = getBaseArguments(write->getOperand(0));
  return !bases.empty() && llvm::none_of(bases, [&](BlockArgument base) {
    return outputs.contains(base.getArgNumber());
  });
}

void IgnoreOutputs::transform() {
  triton::FuncOp kernel = getOrCreateDifferentiated(getOperation());
  ArgumentSet outputs = findWithCotangents(kernel, allCotangents, cotangents);
  MemoryFlow memory(kernel);
  SmallVector<Operation *> ignored;
  kernel.walk([&](Operation *op) {
    if (isa<gpu::BarrierOp, triton::gpu::BarrierOp>(op))
      ignored.push_back(op);
    if (getWrittenValue(op) && op->use_empty() && missesAll(op, outputs) &&
        (memory.getReadsOf(op).empty() ||
         mutation::isMade("outputs:ignored though they are read")))
      ignored.push_back(op);
  });
  for (Operation *op : ignored)
    op->erase();
}
