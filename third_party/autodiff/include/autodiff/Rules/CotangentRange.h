//===- CotangentRange.h - How large cotangents may become -------*- C++ -*-===//
//
// A product of operands in half precision is fast, but half precision has not
// the range of the float32 that cotangents are computed in: beyond 65504 it is
// infinite, below 6e-8 zero. Cotangents stay within the range of the upstream
// gradients that they are made of, but for a product of many factors, as long
// as nothing divides by what may be small.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_RULES_COTANGENTRANGE_H
#define AUTODIFF_RULES_COTANGENTRANGE_H

#include "autodiff/Analysis/Activity.h"

namespace mlir::autodiff {

/// Whether the cotangent of `value` may leave the range of half precision where
/// upstream gradients in half precision do not: one comes in another type, or
/// what is made of `value` is divided by what may be small (the standard
/// deviation of a norm).
bool mayLeaveHalf(Value value, const Activity &activity);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_COTANGENTRANGE_H
