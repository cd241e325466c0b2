//===- FitFrontend.cpp - What Triton's frontend takes ---------------------===//
#include "autodiff/Source/Passes.h"

#include "autodiff/Builders/Products.h"
#include "autodiff/Support/Structure.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_FITFRONTEND
#include "autodiff/Source/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct FitFrontend : autodiff::impl::FitFrontendBase<FitFrontend> {
  using FitFrontendBase::FitFrontendBase;

  /// The same as `min_dot_size` of a backend of Triton.
  int64_t getLeastSum(triton::DotOp dot) const {
    Type element = getElementTypeOrSelf(dot.getA().getType());
    unsigned place = llvm::Log2_32(element.getIntOrFloatBitWidth() / 8);
    return place < leastSums.size() ? leastSums[place] : 1;
  }

  void runOnOperation() override {
    getOperation().walk([&](triton::DotOp dot) {
      auto lhs = cast<RankedTensorType>(dot.getA().getType());
      int64_t length = lhs.getShape().back(), least = getLeastSum(dot);
      if (length < least)
        spreadSum(dot, least / length);
    });
    WalkResult result = getOperation().walk([](triton::MapElementwiseOp map) {
      return WalkResult(structureRegion(map.getScalarOp()));
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
