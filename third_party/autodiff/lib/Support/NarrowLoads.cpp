//===- NarrowLoads.cpp - Narrow elements in memory ------------------------===//
#include "autodiff/Support/NarrowLoads.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;

/// What a value is computed from, but for what blocks are handed.
static SetVector<Operation *> findSources(Value value) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  (void)getBackwardSlice(value, &slice, options);
  return slice;
}

static int64_t findNarrowestOf(const SetVector<Operation *> &slice) {
  int64_t narrowest = 64;
  for (Operation *op : slice)
    if (isa<triton::LoadOp, triton::DescriptorLoadOp>(op))
      if (auto tile = dyn_cast<RankedTensorType>(op->getResult(0).getType());
          tile && tile.getElementType().isIntOrFloat())
        narrowest = std::min<int64_t>(narrowest, tile.getElementTypeBitWidth());
  return std::max<int64_t>(narrowest, 8);
}

int64_t mlir::autodiff::findNarrowestLoad(Value value) {
  return findNarrowestOf(findSources(value));
}

int64_t mlir::autodiff::findLayoutWidth(Value operand) {
  SetVector<Operation *> slice = findSources(operand);
  bool isJoined = llvm::any_of(slice, llvm::IsaPred<triton::JoinOp>);
  return findNarrowestOf(slice) / (isJoined ? 2 : 1);
}
