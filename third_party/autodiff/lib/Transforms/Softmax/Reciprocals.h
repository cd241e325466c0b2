//===- Reciprocals.h - Products with 1/l as quotients -----------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RECIPROCALS_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RECIPROCALS_H

#include "mlir/IR/Value.h"

namespace mlir::autodiff {

/// Replaces multiplications by the reciprocal of `sum`, 1/l or a power of e, by
/// divisions. The adjoint of a quotient uses the quotient, which a forward
/// stores; that of a product uses its operands, which it does not store.
void divideBy(Value sum);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RECIPROCALS_H
