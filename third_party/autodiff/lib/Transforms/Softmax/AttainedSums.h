//===- AttainedSums.h - Sums that are at least one --------------*- C++ -*-===//
//
// In Σ e^(x−m) with m = max x, the term where x is m is one, so the sum is at
// least one. So is a loop's sum relative to a running maximum after each
// iteration: either the term of the new maximum is in the iteration, or the
// maximum and the scale of the old sum, at least one, stay the same. A kernel
// may ask whether such a sum is zero, since all terms were masked. Then a
// finite maximum is the answer.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_ATTAINEDSUMS_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_ATTAINEDSUMS_H

#include "RescaledLoop.h"
#include "autodiff/Analysis/ScalingDegrees.h"

namespace mlir::autodiff {

/// Whether `sum` is Σ e^(c(x−m)) for values x of which `maximum` is one, in
/// rows where `maximum` is m. `degrees` decides selections.
bool isAttained(Value sum, Value m, Value maximum, ScalingDegrees &degrees);

/// Whether a sum is at least one after an iteration where m' is finite, given
/// that it was before where m was.
bool staysAttained(const RescaledLoop &found, unsigned index);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_ATTAINEDSUMS_H
