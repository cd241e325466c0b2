//===- Constants.h - Numbers that constants are -----------------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_CONSTANTS_H
#define AUTODIFF_SUPPORT_CONSTANTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include <optional>

namespace mlir::autodiff {

/// The float of a constant attribute; for a tile, if it is the same in all
/// lanes.
inline std::optional<APFloat> getNumber(Attribute constant) {
  if (auto splat = dyn_cast<SplatElementsAttr>(constant))
    constant = splat.getSplatValue<Attribute>();
  auto number = dyn_cast<FloatAttr>(constant);
  return number ? std::optional(number.getValue()) : std::nullopt;
}

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_CONSTANTS_H
