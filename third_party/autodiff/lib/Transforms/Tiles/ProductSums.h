//===- ProductSums.h - Loops that sum products ------------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_TILES_PRODUCTSUMS_H
#define AUTODIFF_LIB_TRANSFORMS_TILES_PRODUCTSUMS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The product that the loop, or inner loops that pass the sum on, add to a
/// carried value, as its only use; null if there is none.
triton::DotOp findSummand(scf::ForOp loop, unsigned index);

/// The loop or branch with products that computes a float sum; null if there is
/// none.
Operation *findProducts(Value sum);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_TILES_PRODUCTSUMS_H
