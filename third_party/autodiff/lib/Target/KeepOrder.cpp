//===- KeepOrder.cpp - Reshaped tiles whose order counts ------------------===//
//
// If all that uses a reshaped tile of one axis are reductions and histograms,
// `triton-combine` lets the compiler put its elements in any order. It does so
// where other operands, such as indices or a mask, are in the right order.
//
//===----------------------------------------------------------------------===//
#include "Columns.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/Reduction.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Target/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_KEEPORDER
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Of a histogram, zeros in place of elements that do not count: what uses the
/// tile is no histogram then.
static void select(triton::HistogramOp histogram) {
  OpBuilder b(histogram);
  Location loc = histogram.getLoc();
  Value tile = histogram.getSrc();
  histogram.getSrcMutable().assign(arith::SelectOp::create(
      b, loc, histogram.getMask(), tile, zeroOf(b, loc, tile.getType())));
}

namespace {
struct KeepOrder : autodiff::impl::KeepOrderBase<KeepOrder> {
  void runOnOperation() override {
    triton::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(kRoleAttr) || Target::of(kernel).name == "cpu" ||
        mutation::isMade("keep-order:none"))
      return;
    SetVector<Operation *> users;
    kernel.walk([&](triton::ReshapeOp reshape) {
      if (reshape.getType().getRank() == 1)
        users.insert_range(reshape->getUsers());
    });
    for (Operation *user : users) {
      auto reduce = dyn_cast<triton::ReduceOp>(user);
      auto histogram = dyn_cast<triton::HistogramOp>(user);
      if (reduce && !isOfAnyOrder(reduce))
        reduceColumns(reduce);
      else if (histogram && histogram.getMask())
        select(histogram);
    }
  }
};
} // namespace
