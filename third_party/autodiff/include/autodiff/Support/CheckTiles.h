//===- CheckTiles.h - Tiles as large as Triton allows -----------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_CHECKTILES_H
#define AUTODIFF_SUPPORT_CHECKTILES_H

#include "mlir/IR/Operation.h"

namespace mlir::autodiff {

/// Fails, with an error at the operation, if a tile has an unknown extent, no
/// elements, or more elements than Triton allows. Code that counts elements in
/// 32 bits afterwards is safe.
LogicalResult checkTiles(Operation *root);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_CHECKTILES_H
