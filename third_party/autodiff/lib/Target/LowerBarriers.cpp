//===- LowerBarriers.cpp - Barriers that Triton respects ------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Target/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LOWERBARRIERS
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Compiles `kernel` for one CTA per program, whatever the forward uses.
static void setOneCta(triton::FuncOp kernel) {
  Builder b(kernel.getContext());
  LaunchOp launch = launchOf(kernel);
  NamedAttrList options(launch.getOptionsAttr());
  options.set("num_ctas", b.getI32IntegerAttr(1));
  launch.setOptionsAttr(options.getDictionary(b.getContext()));
}

namespace {
struct LowerBarriers : autodiff::impl::LowerBarriersBase<LowerBarriers> {
  using LowerBarriersBase::LowerBarriersBase;

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<triton::FuncOp>())
      if (kernel->hasAttr(kRoleAttr))
        lower(kernel);
  }

  void lower(triton::FuncOp kernel) {
    bool isOwn = own && !mutation::isMade("lower-barriers:not Triton's own");
    bool waits = false;
    kernel.walk([&](Operation *op) {
      if (!isa<gpu::BarrierOp, triton::gpu::BarrierOp>(op))
        return;
      waits = true;
      OpBuilder b(op);
      if (isOwn)
        triton::gpu::BarrierOp::create(b, op->getLoc(),
                                       triton::gpu::AddrSpace::All);
      else
        gpu::BarrierOp::create(b, op->getLoc());
      op->erase();
    });
    if (waits)
      setOneCta(kernel);
  }
};
} // namespace
