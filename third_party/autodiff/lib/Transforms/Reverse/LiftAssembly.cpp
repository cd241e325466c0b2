//===- LiftAssembly.cpp - Inline assembly between differentiated values ---===//
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Assembly/Lift.h"
#include "autodiff/Assembly/PtxInstruction.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LIFTASSEMBLY
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct LiftAssembly : autodiff::impl::LiftAssemblyBase<LiftAssembly> {
  using LiftAssemblyBase::LiftAssemblyBase;

  void runOnOperation() override;
};
} // namespace

void LiftAssembly::runOnOperation() {
  triton::FuncOp kernel = getOrCreateDifferentiated(getOperation());
  if (!kernel)
    return;
  Activity activity(kernel,
                    allWanted ? findLoaded(kernel)
                              : ArgumentSet(wanted.begin(), wanted.end()),
                    allCotangents
                        ? findStored(kernel)
                        : ArgumentSet(cotangents.begin(), cotangents.end()));
  auto isActive = [&](Value value) { return activity.isActive(value); };
  SmallVector<triton::ElementwiseInlineAsmOp> active;
  kernel.walk([&](triton::ElementwiseInlineAsmOp op) {
    if (llvm::any_of(op->getResults(), isActive) &&
        llvm::any_of(op->getOperands(),
                     [&](Value value) { return activity.isVaried(value); }))
      active.push_back(op);
  });
  for (triton::ElementwiseInlineAsmOp op : active) {
    std::string text = op.getAsmString().trim().str();
    if (llvm::Error reason = liftAssembly(op)) {
      op->emitError() << "no derivative rule for the inline assembly \"" << text
                      << "\" ('" << op->getName() << "'), which lies between a "
                      << "differentiated input and an output: "
                      << llvm::toString(std::move(reason))
                      << "; give its rule with register_vjp (docs/python.md), "
                         "or detach the tensors that it depends on";
      return signalPassFailure();
    }
  }
}
