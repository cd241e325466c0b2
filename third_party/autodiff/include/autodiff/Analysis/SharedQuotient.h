//===- SharedQuotient.h - Which lanes have the same address -----*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_SHAREDQUOTIENT_H
#define AUTODIFF_ANALYSIS_SHAREDQUOTIENT_H

#include "mlir/IR/Operation.h"

namespace mlir::autodiff {

/// The quotient p / d through which alone `value`, a tile, depends on the lane:
/// all lanes with the same quotient have the same value, as pixels of a channel
/// have. The positions p never fall from one lane to a later one, and d is the
/// same in all. Null if there is no such quotient, or several.
Operation *findSharedQuotient(Value value);

/// How far the position in the last lane of such a quotient is from the first.
int64_t getPositionSpan(Operation *quotient);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SHAREDQUOTIENT_H
