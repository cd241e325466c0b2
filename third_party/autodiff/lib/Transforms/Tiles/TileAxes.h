//===- TileAxes.h - Axes of tiles that are divided together -----*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_TILES_TILEAXES_H
#define AUTODIFF_LIB_TRANSFORMS_TILES_TILEAXES_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {

/// An axis of each of some tiles. Where one of them is divided, so are the
/// others, for operations make parts of their results of parts of their
/// operands.
using RelatedAxes = llvm::MapVector<Value, unsigned>;

/// The axes of the tiles that a block computes with, related ones together;
/// without those of which a tile has two. What can be made again in any part,
/// such as indices, relates nothing.
SmallVector<RelatedAxes> collectRelatedAxes(Block &block);

/// How long these axes are; 0 if there are none.
int64_t getLength(const RelatedAxes &axes);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_TILES_TILEAXES_H
