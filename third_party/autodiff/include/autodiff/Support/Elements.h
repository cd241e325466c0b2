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

/// How many elements a value of this type has.
inline int64_t elementsOf(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? tile.getNumElements() : 1;
}

/// The size in bytes of a value of this type in memory.
inline double bytesOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  double bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
  return elementsOf(type) * std::max(bits, 8.0) / 8;
}

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_ELEMENTS_H
