//===- Rounding.h - Values with an error of their own -----------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_ROUNDING_H
#define AUTODIFF_LIB_TRANSFORMS_ROUNDING_H

#include "mlir/IR/Value.h"

namespace mlir::autodiff {

/// Whether a float is computed with an error of its own, or a constant: it is
/// not one that was loaded, which may be exact.
bool isComputed(Value value);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_ROUNDING_H
