//===- PrimalCombiner.h - The primal's combine functions --------*- C++ -*-===//
//
// How derived kernels evaluate and differentiate the combine function of a
// reduction or scan.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_RULES_PRIMALCOMBINER_H
#define AUTODIFF_LIB_RULES_PRIMALCOMBINER_H

#include "autodiff/Builders/Combiner.h"

namespace mlir::autodiff {

class Differentiation;
class Tangents;

/// The scan of `tiles` along an axis with ∘ of the forward's `region`: x₁∘…∘xᵢ,
/// or in reverse xᵢ∘…∘xₙ.
SmallVector<Value> scanWith(Region &region, ValueRange tiles, unsigned axis,
                            bool reverse, Differentiation &in);

/// The tangents of `op`, a reduction or scan with the function of `region`.
/// `combine` reduces or scans tiles; it is given pairs of an element and its
/// tangent.
LogicalResult pushPairs(
    Operation *op, Region &region, Tangents &tangents,
    llvm::function_ref<SmallVector<Value>(ValueRange tiles, CombineBuilder)>
        combine);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_RULES_PRIMALCOMBINER_H
