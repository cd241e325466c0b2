//===- FreeMaxima.h - Maxima that the outputs do not depend on --*- C++ -*-===//
//
// A softmax subtracts a maximum to avoid overflow; its result is the same
// whatever is subtracted. Scaling degrees (ScalingDegrees.h) prove that. Such a
// maximum is a constant for the derivative, and it does not matter how ties
// share it.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_FREEMAXIMA_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_FREEMAXIMA_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Those of `values` that may all be shifted at once, element by element,
/// without changing what `kernel` stores.
SmallVector<Value> findFree(triton::FuncOp kernel, SmallVector<Value> values);

/// Those of `maxima` that may all be replaced by other values at once without
/// changing what `kernel` stores.
SmallVector<Value> findFreeMaxima(triton::FuncOp kernel,
                                  SmallVector<Value> maxima);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_FREEMAXIMA_H
