//===- Reciprocals.h - Products with 1/l as quotients -----------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RECIPROCALS_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RECIPROCALS_H

#include "mlir/IR/Value.h"

namespace mlir::autodiff {

/// Divides by `sum` what is multiplied by its reciprocal, 1/l or a power of e:
/// the adjoint of a quotient takes the quotient, which a forward stores, and
/// that of a product what it was made from, which it does not.
void divideBy(Value sum);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RECIPROCALS_H
