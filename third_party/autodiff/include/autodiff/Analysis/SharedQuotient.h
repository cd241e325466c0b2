//===- SharedQuotient.h - Which lanes have the same address -----*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_SHAREDQUOTIENT_H
#define AUTODIFF_ANALYSIS_SHAREDQUOTIENT_H

#include "mlir/IR/Operation.h"

namespace mlir::autodiff {

/// Finds p / d in a tile whose lanes differ only by that quotient: lanes with
/// the same quotient have the same value, as the pixels of a channel. Positions
/// p never decrease from one lane to the next, and d is the same in all. Null
/// if there is no such quotient, or several.
Operation *findSharedQuotient(Value value);

/// The largest difference of positions within one tile of such a quotient: last
/// lane minus first.
int64_t getPositionSpan(Operation *quotient);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SHAREDQUOTIENT_H
