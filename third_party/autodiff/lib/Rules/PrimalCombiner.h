//===- PrimalCombiner.h - The primal's combine functions --------*- C++ -*-===//
//
// What a derived kernel makes of the function that a reduction or scan of the
// primal combines with.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_RULES_PRIMALCOMBINER_H
#define AUTODIFF_LIB_RULES_PRIMALCOMBINER_H

#include "autodiff/Builders/Combiner.h"

namespace mlir::autodiff {

class Differentiation;
class Tangents;

/// The running combination ∘ of `tiles` along an axis by the primal's `region`:
/// x₁∘…∘xᵢ, or in reverse xᵢ∘…∘xₙ.
SmallVector<Value> scanWith(Region &region, ValueRange tiles, unsigned axis,
                            bool reverse, Differentiation &in);

/// The tangents of `op`, a reduction or scan with the function of `region`: it
/// combines pairs of an element and its tangent, as `combine` combines tiles.
LogicalResult pushPairs(
    Operation *op, Region &region, Tangents &tangents,
    llvm::function_ref<SmallVector<Value>(ValueRange tiles, CombineBuilder)>
        combine);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_RULES_PRIMALCOMBINER_H
