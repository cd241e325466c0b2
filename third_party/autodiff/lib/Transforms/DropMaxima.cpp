//===- DropMaxima.cpp - Maxima that are constants to the derivative -------===//
#include "FreeMaxima.h"
#include "Maxima.h"
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_DROPMAXIMA
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct DropMaxima : autodiff::impl::DropMaximaBase<DropMaxima> {
  void runOnOperation() override {
    triton::FuncOp kernel = getDifferentiated(getOperation());
    if (!kernel)
      return;
    SmallVector<Value> maxima;
    kernel.walk([&](ResidualOp residual) {
      if (isDifferentiable(residual.getType()) &&
          isMaximum(residual.getValue()))
        maxima.push_back(residual.getResult());
    });
    for (Value maximum : findFreeMaxima(kernel, std::move(maxima)))
      maximum.getDefiningOp<ResidualOp>().setConstant(true);
    // Clean-ups may renumber results.
    kernel.walk([](scf::ForOp loop) { loop->removeAttr(kAttainedAttr); });
  }
};
} // namespace
