//===- NarrowLoads.cpp - Narrow elements in memory ------------------------===//
#include "autodiff/Support/NarrowLoads.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;

int64_t mlir::autodiff::findNarrowestLoad(Value value) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  (void)getBackwardSlice(value, &slice, options);
  int64_t narrowest = 64;
  for (Operation *op : slice)
    if (isa<triton::LoadOp, triton::DescriptorLoadOp>(op))
      if (auto tile = dyn_cast<RankedTensorType>(op->getResult(0).getType());
          tile && tile.getElementType().isIntOrFloat())
        narrowest = std::min<int64_t>(narrowest, tile.getElementTypeBitWidth());
  return std::max<int64_t>(narrowest, 8);
}
