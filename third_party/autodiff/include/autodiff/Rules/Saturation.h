//===- Saturation.h - Tangents of exponentials at their ends ----*- C++ -*-===//
#ifndef AUTODIFF_RULES_SATURATION_H
#define AUTODIFF_RULES_SATURATION_H

#include "autodiff/Builders/Tile.h"

namespace mlir::autodiff {

class Differentiation;

/// The `tangent` of a `result` y = eˣ of `op`, but zero where y is at an end of
/// its range and y·ẋ may be NaN for that:
///
/// - y = 0, where ẋ may be infinite: that of a lowest number, times what moves;
/// - y = ∞, where something is finite in spite of that, such as 1/(1 + y).
///
/// Each is left out where it cannot be.
Tile unlessSaturated(Tile tangent, Tile result, Operation *op,
                     const Differentiation &in);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_SATURATION_H
