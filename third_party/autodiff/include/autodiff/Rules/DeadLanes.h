//===- DeadLanes.h - Lanes that a mask left out -----------------*- C++ -*-===//
#ifndef AUTODIFF_RULES_DEADLANES_H
#define AUTODIFF_RULES_DEADLANES_H

#include "autodiff/Rules/Tile.h"

namespace mlir::autodiff {

class Adjoint;

// A masked store and a selection leave lanes out: their cotangent is zero, and
// the primal may hold anything there, infinities and NaN included. 0·∞ must not
// reach the lanes that count: a sum over lanes may follow.

/// The condition outside of which a cotangent is zero, built in the backward
/// kernel; null if none is known. With `adjoint`, that of a cotangent that a
/// reversed loop carries counts, too, and rows that are dead as a whole are so
/// in products and sums.
Value findLiveLanes(Tile cotangent, const Adjoint *adjoint = nullptr);

/// Where `live`, a condition on the lanes of a tile, may hold for some lane
/// along `axis`: a condition without that axis; null if it says nothing.
Value findLiveAcross(OpBuilder &builder, Location loc, Value live,
                     unsigned axis);

/// The cotangent in live lanes, anything elsewhere: without its own selection.
Tile withoutSelection(Tile cotangent);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_DEADLANES_H
