//===- ProductSums.h - Loops that sum products ------------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_TILES_PRODUCTSUMS_H
#define AUTODIFF_LIB_TRANSFORMS_TILES_PRODUCTSUMS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The product that is added to a carried value, and to nothing else, by the
/// loop or by loops in it that hand the sum on; null if there is none.
triton::DotOp findSummand(scf::ForOp loop, unsigned index);

/// The loop or branch with products in it that a sum of floats comes from; null
/// if there is none.
Operation *findProducts(Value sum);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_TILES_PRODUCTSUMS_H
