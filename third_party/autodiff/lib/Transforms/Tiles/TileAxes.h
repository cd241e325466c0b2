//===- TileAxes.h - Axes of tiles that are divided together -----*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_TILES_TILEAXES_H
#define AUTODIFF_LIB_TRANSFORMS_TILES_TILEAXES_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {

/// One axis of each of some tiles. If one tile is divided along it, so are the
/// others: operations compute parts of results from parts of operands.
using RelatedAxes = llvm::MapVector<Value, unsigned>;

/// The axes of the tiles that a block computes with, in groups of related ones.
/// Groups with two axes of the same tile are left out. Values that are cheap to
/// compute for any part, such as indices, do not relate axes.
SmallVector<RelatedAxes> collectRelatedAxes(Block &block);

/// The length of these axes; 0 if there are none.
int64_t getLength(const RelatedAxes &axes);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_TILES_TILEAXES_H
