//===- LanesAcross.h - Conditions on lanes, without one axis ----*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_LANESACROSS_H
#define AUTODIFF_BUILDERS_LANESACROSS_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "mlir/IR/Builders.h"

namespace mlir::autodiff {

/// Reduces `live`, a condition on the lanes of a tile, by "or" along `axis`: a
/// condition without that axis; null if it is true everywhere. Adds numbers
/// that must not be negative for that to `assumed`, if it is not null.
Value findLiveAcross(OpBuilder &builder, Location loc, Value live,
                     unsigned axis, llvm::SmallVectorImpl<ScalarExpr> *assumed);

/// Where a tile of cotangents has an element other than zero along `axis`: a
/// condition without that axis.
Value findNonZeroAcross(OpBuilder &builder, Location loc, Value cotangent,
                        unsigned axis);

/// Where `live` holds in a lane or in a later one along `axis`; with `before`,
/// in an earlier one.
Value findLiveFrom(OpBuilder &builder, Location loc, Value live, unsigned axis,
                   bool before);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_LANESACROSS_H
