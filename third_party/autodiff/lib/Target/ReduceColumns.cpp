//===- ReduceColumns.cpp - Reductions to scalars, of columns --------------===//
#include "Columns.h"
#include "autodiff/Target/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_REDUCECOLUMNS
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static bool isOfOneAxis(triton::ReduceOp reduce) {
  auto type = cast<RankedTensorType>(reduce.getOperands().front().getType());
  return type.getRank() == 1;
}

void mlir::autodiff::reduceColumns(triton::ReduceOp reduce) {
  OpBuilder b(reduce);
  Location loc = reduce.getLoc();
  SmallVector<Value> columns;
  for (Value row : reduce.getOperands())
    columns.push_back(triton::ExpandDimsOp::create(b, loc, row, /*axis=*/1));
  auto ofColumns = triton::ReduceOp::create(b, loc, columns, /*axis=*/0);
  ofColumns.getCombineOp().takeBody(reduce.getCombineOp());
  for (auto [old, single] :
       llvm::zip(reduce.getResults(), ofColumns->getResults()))
    old.replaceAllUsesWith(triton::UnsplatOp::create(b, loc, single));
  reduce.erase();
}

namespace {
struct ReduceColumns : autodiff::impl::ReduceColumnsBase<ReduceColumns> {
  void runOnOperation() override {
    SmallVector<triton::ReduceOp> reductions;
    getOperation().walk([&](triton::ReduceOp reduce) {
      if (isOfOneAxis(reduce))
        reductions.push_back(reduce);
    });
    llvm::for_each(reductions, reduceColumns);
  }
};
} // namespace
