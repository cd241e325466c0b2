//===- SumUnitAxes.cpp - Axes of one element, dropped by sums -------------===//
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Target/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SUMUNITAXES
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// The axes of one element that a reshape drops, first to last; none if it does
/// anything else.
static SmallVector<unsigned> findDropped(triton::ReshapeOp reshape) {
  ArrayRef<int64_t> from = reshape.getSrc().getType().getShape();
  ArrayRef<int64_t> to = reshape.getType().getShape();
  SmallVector<unsigned> dropped;
  for (auto [axis, size] : llvm::enumerate(from)) {
    size_t kept = axis - dropped.size();
    if (kept < to.size() && size == to[kept])
      continue;
    if (size != 1)
      return {};
    dropped.push_back(axis);
  }
  if (from.size() - dropped.size() != to.size())
    return {};
  return dropped;
}

namespace {
struct SumUnitAxes : autodiff::impl::SumUnitAxesBase<SumUnitAxes> {
  void runOnOperation() override {
    getOperation().walk([](triton::ReshapeOp reshape) {
      SmallVector<unsigned> dropped = findDropped(reshape);
      if (dropped.empty() || !isFloat(reshape.getType()))
        return;
      OpBuilder b(reshape);
      Value sum = reshape.getSrc();
      for (unsigned axis : llvm::reverse(dropped))
        sum = sumOver(b, reshape.getLoc(), sum, axis);
      reshape.replaceAllUsesWith(sum);
      reshape.erase();
    });
  }
};
} // namespace
