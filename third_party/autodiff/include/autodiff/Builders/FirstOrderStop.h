//===- FirstOrderStop.h - Stops that are for first derivatives --*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_FIRSTORDERSTOP_H
#define AUTODIFF_BUILDERS_FIRSTORDERSTOP_H

#include "autodiff/Dialect/Autodiff.h"

namespace mlir::autodiff {

/// Attribute of an `autodiff.stop_gradient` that a pass has made, since the
/// first derivative through it cancels, or is added elsewhere. The gradient is
/// a function of the value all the same: its tangent goes through.
constexpr llvm::StringLiteral kFirstOrderAttr = "autodiff.first_order";

inline StopGradientOp createFirstOrderStop(OpBuilder &b, Location loc,
                                           Value value) {
  auto stop = StopGradientOp::create(b, loc, value.getType(), value);
  stop->setAttr(kFirstOrderAttr, b.getUnitAttr());
  return stop;
}

/// Stops the first derivative of a value for all that uses it.
inline void stopFirstOrder(Value value) {
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(value);
  auto stop = createFirstOrderStop(b, value.getLoc(), value);
  value.replaceAllUsesExcept(stop, stop);
}

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_FIRSTORDERSTOP_H
