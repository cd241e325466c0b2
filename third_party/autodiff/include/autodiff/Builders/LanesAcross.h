//===- LanesAcross.h - Conditions on lanes, without one axis ----*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_LANESACROSS_H
#define AUTODIFF_BUILDERS_LANESACROSS_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "mlir/IR/Builders.h"

namespace mlir::autodiff {

/// Where `live`, a condition on the lanes of a tile, holds for some lane along
/// `axis`: a condition without that axis; null if that is everywhere. Numbers
/// of a launch that must not be negative for that are added to `assumed`, if
/// there may be any.
Value findLiveAcross(OpBuilder &builder, Location loc, Value live,
                     unsigned axis, llvm::SmallVectorImpl<ScalarExpr> *assumed);

/// Where a tile of cotangents is not zero for some lane along `axis`: a
/// condition without that axis.
Value findNonZeroAcross(OpBuilder &builder, Location loc, Value cotangent,
                        unsigned axis);

/// Where `live` holds in a lane or in one behind it along `axis`, or with
/// `before` in one before it.
Value findLiveFrom(OpBuilder &builder, Location loc, Value live, unsigned axis,
                   bool before);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_LANESACROSS_H
