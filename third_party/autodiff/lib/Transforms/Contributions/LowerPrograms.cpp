//===- LowerPrograms.cpp - Program ids as places in a box -----------------===//
#include "autodiff/Builders/Regrid.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LOWERPROGRAMS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static void lower(ProgramsOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<Value> extents;
  for (auto extent : op.getExtents().getAsRange<ExprAttr>())
    extents.push_back(createSize(b, loc, extent));
  Value id = triton::GetProgramIdOp::create(b, loc, 0);
  op.replaceAllUsesWith(takeApart(b, loc, id, extents));
  op.erase();
}

namespace {
struct LowerPrograms : autodiff::impl::LowerProgramsBase<LowerPrograms> {
  void runOnOperation() override { getOperation().walk(lower); }
};
} // namespace
