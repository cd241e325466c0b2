//===- LaunchOptions.cpp - Warps and stages for loops of products ---------===//
#include "Costs.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LAUNCHOPTIONS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct LaunchOptions : autodiff::impl::LaunchOptionsBase<LaunchOptions> {
  void runOnOperation() override {
    triton::FuncOp kernel = getOperation();
    if (!isBackward(kernel))
      return;
    ProductCosts costs = ProductCosts::of(kernel);
    if (costs.work == 0)
      return;
    Builder b(&getContext());
    auto number = [&](llvm::StringRef name, int value) {
      return b.getNamedAttr(name, b.getI32IntegerAttr(value));
    };
    kernel->setAttr(kOptionsAttr,
                    b.getDictionaryAttr(
                        {number("num_stages", costs.getStages()),
                         number("num_warps", costs.getWarps().value_or(8))}));
  }
};
} // namespace
