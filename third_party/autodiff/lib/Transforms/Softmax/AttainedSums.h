//===- AttainedSums.h - Sums that are at least one --------------*- C++ -*-===//
//
// In Σ e^(x−m), m = max x, the term where x is m is one. So is, in a loop, what
// an iteration leaves of a sum relative to a running maximum: either the term
// of the new maximum is among its own, or the maximum and the scale of what it
// had, at least one, stay what they were. Where a kernel asks whether such a
// sum is zero (nothing was seen), a finite maximum answers that.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_ATTAINEDSUMS_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_ATTAINEDSUMS_H

#include "RescaledLoop.h"
#include "autodiff/Analysis/ScalingDegrees.h"

namespace mlir::autodiff {

/// Whether `sum` is Σ e^(c(x−m)) for the x that `maximum` is one of, where that
/// is m; `degrees` decides selections.
bool isAttained(Value sum, Value m, Value maximum, ScalingDegrees &degrees);

/// Whether this sum is at least one after an iteration where m' is finite, if
/// it is before where m is.
bool staysAttained(const RescaledLoop &found, unsigned index);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_ATTAINEDSUMS_H
