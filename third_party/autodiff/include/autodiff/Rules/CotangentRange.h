//===- CotangentRange.h - How large cotangents may become -------*- C++ -*-===//
//
// A product of operands in half precision is fast, but half precision has a
// smaller range than the float32 that cotangents are computed in: beyond 65504
// it is infinite, below 6e-8 zero. Cotangents stay in the range of the upstream
// gradients, but for products of many factors, as long as nothing divides by a
// number that may be small.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_RULES_COTANGENTRANGE_H
#define AUTODIFF_RULES_COTANGENTRANGE_H

#include "autodiff/Analysis/Activity.h"

namespace mlir::autodiff {

/// Whether the cotangent of `value` may leave the range of half precision
/// although upstream gradients in half precision do not. It may if an upstream
/// gradient has another type, or if values that depend on `value` are divided
/// by a number that may be small (the standard deviation of a norm).
bool mayLeaveHalf(Value value, const Activity &activity);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_COTANGENTRANGE_H
