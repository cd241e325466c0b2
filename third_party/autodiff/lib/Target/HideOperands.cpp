//===- HideOperands.cpp - Products of tiles from behind reductions --------===//
#include "Hidden.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Target/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_HIDEOPERANDS
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct HideOperands : autodiff::impl::HideOperandsBase<HideOperands> {
  void runOnOperation() override {
    getOperation().walk([](triton::DotOp dot) {
      OpBuilder b(dot);
      for (OpOperand *factor : {&dot.getAMutable(), &dot.getBMutable()})
        if (isFloat(factor->get().getType()) &&
            !factor->get().getDefiningOp<triton::ReduceOp>())
          factor->set(hide(b, dot.getLoc(), factor->get()));
    });
  }
};
} // namespace
