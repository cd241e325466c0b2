//===- MarkMiscomputed.cpp - Products that Triton gets wrong --------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Target/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MARKMISCOMPUTED
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct MarkMiscomputed : autodiff::impl::MarkMiscomputedBase<MarkMiscomputed> {
  void runOnOperation() override {
    triton::FuncOp kernel = getOperation();
    const Target &target = Target::of(kernel);
    auto mark = UnitAttr::get(&getContext());
    kernel.walk([&](triton::DotOp dot) {
      if (!target.isTooShort(dot) || mutation::isMade("mark-miscomputed:none"))
        return;
      dot->setAttr(kMiscomputedAttr, mark);
      kernel->setAttr(kOrderedAttr, mark);
    });
  }
};
} // namespace
