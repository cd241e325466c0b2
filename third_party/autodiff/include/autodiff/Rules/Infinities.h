//===- Infinities.h - Infinite factors of cotangents ------------*- C++ -*-===//
#ifndef AUTODIFF_RULES_INFINITIES_H
#define AUTODIFF_RULES_INFINITIES_H

#include "autodiff/Builders/Tile.h"

namespace mlir::autodiff {

class LiveLanes;
class ScalarExpr;

/// Whether a value is known to be finite in every lane. `isFinite` may decide
/// that for a value. For a load, it decides about lanes where the mask is true.
bool isFiniteEverywhere(
    Value value, llvm::function_ref<std::optional<bool>(Value)> isFinite = {});

/// Whether `op` divides floats, however precisely.
bool isQuotient(Operation *op);

/// Whether this constant, or a multiple of it, may become infinite: padding
/// with the largest float overflows.
bool isNearlyInfinite(const llvm::APFloat &number);

/// Whether a value of the forward is finite in all lanes that are not live
/// (LiveLanes.h), given that it is finite in the live ones. The question is
/// about executions of block `in`. See `findMissingBounds` for `assumed`.
bool isFiniteElsewhere(Value value, LiveLanes &lanes,
                       llvm::SmallVectorImpl<ScalarExpr> *assumed, Block *in);

// Padding for a softmax or a sum of exponentials is −∞ or ∞, or becomes that
// (log 0). The cotangent of such a lane is zero, because of the lane's own
// value. A finite factor would keep it zero; an infinite one makes NaN.

/// select(cotangent == 0, 0, contribution), if the factor in `contribution`, a
/// partial derivative of `op` times `cotangent`, may be infinite because of
/// padding; else the contribution. `operands` and `result` are those of `op` in
/// the backward kernel.
Tile besidePadding(Tile contribution, Tile cotangent, Operation *op,
                   ArrayRef<Tile> operands, Tile result);

/// The same of a tangent: zero where the result of `op` is infinite, if the
/// factor of `tangent` may be infinite because of padding. An infinite result
/// does not change with its operands.
Tile unlessPadding(Tile contribution, Tile tangent, Operation *op,
                   ArrayRef<Tile> operands, Tile result);

// A sigmoid, 1/(1 + eᶻ), reaches its limit long before the exponential
// overflows. Its derivative is zero there, and should stay zero when it is
// multiplied by eᶻ = ∞.

/// The factor in the derivative of an exponential y = eᶻ: y itself, or the
/// largest float where y is infinite, if all that depends on the result of `op`
/// may still be finite.
Tile beforeOverflow(Tile y, Operation *op);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_INFINITIES_H
