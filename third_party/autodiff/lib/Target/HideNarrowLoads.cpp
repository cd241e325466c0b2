//===- HideNarrowLoads.cpp - Float64 products of narrow elements ----------===//
//
// If an operand of a product comes of elements of at most 16 bits in memory, or
// of at most 32 bits and of a `tt.join`, a thread gets several neighbours along
// the sum (`findLayoutWidth`). Before 3.9, Triton's lowering of float64
// products takes one neighbour only, and fails. A mask that the forward has
// saved as bytes is enough.
//
// Triton looks for these through operations on elements, views and broadcasts,
// not through reductions. So it finds none behind a reduction over one element,
// which changes nothing.
//
//===----------------------------------------------------------------------===//
#include "Hidden.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/NarrowLoads.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Target/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_HIDENARROWLOADS
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct HideNarrowLoads : autodiff::impl::HideNarrowLoadsBase<HideNarrowLoads> {
  void runOnOperation() override {
    triton::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(kRoleAttr) || !Target::of(kernel).isNvidia() ||
        mutation::isMade("hide-narrow-loads:none"))
      return;
    kernel.walk([](triton::DotOp dot) {
      if (!getElementTypeOrSelf(dot.getA().getType()).isF64())
        return;
      OpBuilder b(dot);
      for (OpOperand *factor : {&dot.getAMutable(), &dot.getBMutable()})
        if (getNeighbours(findLayoutWidth(factor->get())) > 1)
          factor->set(hide(b, dot.getLoc(), factor->get()));
    });
  }
};
} // namespace
