//===- ResizeTiles.h - Longer and shorter tiles -----------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_TILES_RESIZETILES_H
#define AUTODIFF_LIB_TRANSFORMS_TILES_RESIZETILES_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// A copy of `kernel`, behind it, in which each program does the work of
/// `factor` neighbours along `place`, a result of its autodiff.programs. Tiles
/// become longer where a neighbour's positions continue. The copy is valid for
/// launches in which `factor` divides the extent, and the expressions added to
/// `conditions` are not zero. Null if anything else depends on the place.
triton::FuncOp widenTiles(triton::FuncOp kernel, OpResult place,
                          unsigned factor,
                          SmallVectorImpl<ExprAttr> &conditions);

/// A copy of `kernel`, behind it, in which `loop` runs `factor` times as often,
/// each time on another part of its tiles. Its iterations add up sums over
/// tiles, or store tiles with an autodiff.divided axis. Null if they do
/// anything else with them.
triton::FuncOp narrowTiles(triton::FuncOp kernel, scf::ForOp loop,
                           unsigned factor);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_TILES_RESIZETILES_H
