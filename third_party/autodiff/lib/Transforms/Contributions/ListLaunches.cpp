//===- ListLaunches.cpp - Every derived kernel in the plan ----------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LISTLAUNCHES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct ListLaunches : autodiff::impl::ListLaunchesBase<ListLaunches> {
  void runOnOperation() override {
    PlanOp::getOrCreate(getOperation());
    for (auto kernel : getOperation().getOps<triton::FuncOp>())
      if (isLaunched(kernel))
        launchOf(kernel);
  }
};
} // namespace
