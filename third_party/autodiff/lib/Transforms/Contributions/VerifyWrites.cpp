//===- VerifyWrites.cpp - Kernels write to memory of their own ------------===//
//
// What a kernel writes outside of what was allocated for it overwrites other
// tensors, silently. That nothing excludes it is a bug in one of our passes.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Writes.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_VERIFYWRITES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// The memory that an operand of a kernel points to, in words.
static std::string nameOf(triton::FuncOp kernel, unsigned operand) {
  if (operand == kernel.getNumArguments())
    return "memory that nobody knows";
  auto described = kernel.getArgAttrOfType<OperandAttr>(operand, kOperandAttr);
  if (!described)
    return "argument " + std::to_string(operand);
  return (stringifyOperandKind(described.getKind()) + " " +
          llvm::Twine(described.getIndex()))
      .str();
}

namespace {
struct VerifyWrites : autodiff::impl::VerifyWritesBase<VerifyWrites> {
  using VerifyWritesBase::VerifyWritesBase;

  void runOnOperation() override {
    PlanOp plan = PlanOp::of(getOperation());
    if (!plan)
      return;
    for (auto launch : plan.getItems<LaunchOp>()) {
      triton::FuncOp kernel = getKernel(launch);
      for (const Write &write : findWrites(kernel, plan)) {
        if (write.inside != Inside::Nothing)
          continue;
        write.op->emitError("internal error: nothing says that what a derived "
                            "kernel writes here is inside of the memory for "
                            "it: ")
            << nameOf(kernel, write.operand);
        return signalPassFailure();
      }
    }
  }
};
} // namespace
