//===- Infinities.h - Infinite factors of cotangents ------------*- C++ -*-===//
#ifndef AUTODIFF_RULES_INFINITIES_H
#define AUTODIFF_RULES_INFINITIES_H

#include "autodiff/Builders/Tile.h"

namespace mlir::autodiff {

class LiveLanes;
class ScalarExpr;

/// Whether a value is finite in every lane, as far as that is seen. `isFinite`
/// may say so of a value, or the contrary; of a load, that it is where its mask
/// holds.
bool isFiniteEverywhere(
    Value value, llvm::function_ref<std::optional<bool>(Value)> isFinite = {});

/// Whether a value of the primal is finite in all lanes that are not live, if
/// it is in those that are, for who asks in block `in`. See `findMissingBounds`
/// for what is `assumed`.
bool isFiniteElsewhere(Value value, LiveLanes &lanes,
                       llvm::SmallVectorImpl<ScalarExpr> *assumed, Block *in);

// Padding that a softmax or a sum of exponentials is not to see is −∞ or ∞, or
// becomes that (log 0): a lane's cotangent is zero there because of what the
// lane holds.

/// `contribution`, a partial derivative of `op` times `cotangent`: zero where
/// the cotangent is, if what it is multiplied with comes of an infinite
/// padding. `operands` and `result` are those of `op` in the backward kernel.
Tile besidePadding(Tile contribution, Tile cotangent, Operation *op,
                   ArrayRef<Tile> operands, Tile result);

/// The same of a tangent: zero where the result of `op` is infinite, if what
/// `tangent` is multiplied with comes of an infinite padding. What is infinite
/// does not move.
Tile unlessPadding(Tile contribution, Tile tangent, Operation *op,
                   ArrayRef<Tile> operands, Tile result);

// A sigmoid, 1/(1 + eᶻ), has come to its limit long before the exponential
// overflows: what it multiplies is zero then, and so is the product.

/// What the derivative of an exponential y = eᶻ multiplies by: y, or the
/// largest number where it is infinite and all that is made of `op`'s result
/// may be finite none the less.
Tile beforeOverflow(Tile y, Operation *op);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_INFINITIES_H
