//===- CheckTiles.h - Tiles as large as Triton allows -----------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_CHECKTILES_H
#define AUTODIFF_SUPPORT_CHECKTILES_H

#include "mlir/IR/Operation.h"

namespace mlir::autodiff {

/// Fails, with an error at the operation, where a tile's extents are not known,
/// or it has no elements, or more than Triton lets a tile have. Whoever counts
/// elements or numbers them in 32 bits afterwards is safe.
LogicalResult checkTiles(Operation *root);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_CHECKTILES_H
