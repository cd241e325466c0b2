//===- DropMaxima.cpp - Maxima that are constants to the derivative -------===//
#include "FreeMaxima.h"
#include "LogSum.h"
#include "Maxima.h"
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_DROPMAXIMA
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Whether a value is the logarithm of a sum that a loop carries instead of a
/// maximum.
static bool isLogSum(Value value) {
  auto loop = value.getDefiningOp<scf::ForOp>();
  return loop && LogSum::match(loop, cast<OpResult>(value).getResultNumber());
}

namespace {
struct DropMaxima : autodiff::impl::DropMaximaBase<DropMaxima> {
  void transform() override {
    triton::FuncOp kernel = getDifferentiated(getOperation());
    SmallVector<Value> maxima;
    kernel.walk([&](ResidualOp residual) {
      if (isDifferentiable(residual.getType()) &&
          (isMaximum(residual.getValue()) || isLogSum(residual.getValue())))
        maxima.push_back(residual.getResult());
    });
    for (Value maximum : findFreeMaxima(kernel, std::move(maxima)))
      maximum.getDefiningOp<ResidualOp>().setConstant(true);
    // Cleanups may renumber results.
    kernel.walk([](scf::ForOp loop) { loop->removeAttr(kAttainedAttr); });
  }
};
} // namespace
