//===- Elements.h - What tiles are made of ----------------------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_ELEMENTS_H
#define AUTODIFF_SUPPORT_ELEMENTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::autodiff {

/// Whether values of this type are floats, or tiles of floats.
inline bool isFloat(Type type) {
  return isa<FloatType>(getElementTypeOrSelf(type));
}

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_ELEMENTS_H
