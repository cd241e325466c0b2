//===- CheckTiles.cpp - Tiles as large as Triton allows -------------------===//
#include "autodiff/Support/CheckTiles.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

/// Triton's TRITON_MAX_TENSOR_NUMEL.
static constexpr int64_t kMaxElements = 1 << 20;

static bool isAllowed(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile)
    return !isa<TensorType>(type);
  int64_t elements = 1;
  for (int64_t extent : tile.getShape()) {
    // Unknown extents are negative.
    if (extent < 1 || extent > kMaxElements / elements)
      return false;
    elements *= extent;
  }
  return true;
}

LogicalResult autodiff::checkTiles(Operation *root) {
  WalkResult walked = root->walk([](Operation *op) -> WalkResult {
    auto check = [&](Type type) -> LogicalResult {
      if (isAllowed(type))
        return success();
      return op->emitOpError("has a tile of type ")
             << type << ", where Triton allows 1 to " << kMaxElements
             << " elements";
    };
    for (Type type : op->getResultTypes())
      if (failed(check(type)))
        return failure();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          if (failed(check(type)))
            return failure();
    return success();
  });
  return failure(walked.wasInterrupted());
}
