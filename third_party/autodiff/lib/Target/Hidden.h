//===- Hidden.h - Tiles whose origin Triton does not see --------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TARGET_HIDDEN_H
#define AUTODIFF_LIB_TARGET_HIDDEN_H

#include "autodiff/Builders/Tile.h"

namespace mlir::autodiff {

/// The tile itself, as a sum over a new axis of one element. Triton does not
/// look through reductions for what a tile is computed from.
inline Value hide(OpBuilder &b, Location loc, Value tile) {
  unsigned rank = cast<RankedTensorType>(tile.getType()).getRank();
  Value behind = triton::ExpandDimsOp::create(b, loc, tile, /*axis=*/rank);
  return sumOver(b, loc, behind, rank);
}

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TARGET_HIDDEN_H
