//===- CarrySums.cpp - Means and logarithms of sums, as plain sums --------===//
//
// What a loop carries may be a plain sum in another form: the logarithm of one,
// or one that is always divided by another (attention whose output is
// normalized after each block). The copy that is differentiated carries the
// sums, so that its iterations stand alone.
//
//===----------------------------------------------------------------------===//
#include "LogSum.h"
#include "RunningMean.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_CARRYSUMS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct CarrySums : autodiff::impl::CarrySumsBase<CarrySums> {
  void runOnOperation() override {
    triton::FuncOp kernel = getDifferentiated(getOperation());
    if (!kernel || kernel == getPrimal(getOperation()))
      return;
    unsigned nextId = 0;
    kernel.walk(
        [&](ResidualOp op) { nextId = std::max(nextId, op.getId() + 1); });
    RunningMean::Quotients quotients;
    kernel.walk([&](scf::ForOp loop) {
      for (unsigned index = 0; index < loop.getNumResults(); ++index) {
        if (auto found = LogSum::match(loop, index))
          nextId += found->carrySum(nextId);
        if (auto found = RunningMean::match(loop, index))
          found->carrySums(quotients);
      }
    });
  }
};
} // namespace
