//===- AdoptKernel.cpp - Differentiate a derived kernel again -------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_ADOPTKERNEL
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct AdoptKernel : autodiff::impl::AdoptKernelBase<AdoptKernel> {
  using AdoptKernelBase::AdoptKernelBase;

  void runOnOperation() override;
  FailureOr<triton::FuncOp> find();
};
} // namespace

FailureOr<triton::FuncOp> AdoptKernel::find() {
  ModuleOp module = getOperation();
  if (!kernel.empty()) {
    auto named = module.lookupSymbol<triton::FuncOp>(kernel);
    if (!named || named.isDeclaration())
      return module.emitError("autodiff-adopt-kernel: there is no kernel ")
             << kernel;
    return named;
  }
  SmallVector<triton::FuncOp> backwards = getBackwards(module);
  if (backwards.size() == 1)
    return backwards.front();
  return module.emitError("autodiff-adopt-kernel: there are ")
         << backwards.size() << " backward kernels; name one of them";
}

/// The first operation of our own dialect in a kernel.
static Operation *findOwn(triton::FuncOp kernel) {
  Operation *found = nullptr;
  kernel.walk([&](Operation *op) {
    if (!found && isa_and_nonnull<AutodiffDialect>(op->getDialect()))
      found = op;
  });
  return found;
}

void AdoptKernel::runOnOperation() {
  FailureOr<triton::FuncOp> adopted = find();
  if (failed(adopted))
    return signalPassFailure();
  if (Operation *op = findOwn(*adopted)) {
    op->emitError("autodiff-adopt-kernel needs a kernel of Triton's own "
                  "operations (autodiff-lower makes it one)");
    return signalPassFailure();
  }
  for (Operation &op : llvm::make_early_inc_range(*getOperation().getBody()))
    if (isa<triton::FuncOp, PlanOp>(op) && &op != adopted->getOperation())
      op.erase();
  dropMarks(*adopted);
  adopted->setPublic();
}
