//===- AdvanceViews.cpp - Views behind what they are of -------------------===//
#include "autodiff/Target/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_ADVANCEVIEWS
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// What computes a view's operand, or the block that is handed it.
using Origin = PointerUnion<Operation *, Block *>;

static Origin findOrigin(Operation *view) {
  Value viewed = view->getOperand(0);
  if (Operation *op = viewed.getDefiningOp())
    return op;
  return viewed.getParentBlock();
}

namespace {
struct AdvanceViews : autodiff::impl::AdvanceViewsBase<AdvanceViews> {
  void runOnOperation() override {
    // All views of an origin keep their order, so that the pass changes nothing
    // the second time. A view is found before the views of itself.
    llvm::MapVector<Origin, SmallVector<Operation *>> views;
    getOperation().walk([&](Operation *op) {
      if (isa<triton::ExpandDimsOp, triton::SplitOp>(op))
        views[findOrigin(op)].push_back(op);
    });
    for (auto &[origin, of] : views) {
      auto *last = dyn_cast<Operation *>(origin);
      for (Operation *view : of) {
        if (last)
          view->moveAfter(last);
        else
          view->moveBefore(&cast<Block *>(origin)->front());
        last = view;
      }
    }
  }
};
} // namespace
