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

#include "autodiff/Analysis/ScalingDegrees.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The scope of a proof about what is computed in `block`: the innermost loop
/// around it, or the kernel. In a loop, each iteration has values of its own.
Operation *findScope(Block *block);

/// Whether nothing that leaves the scope changes.
bool isUnseen(ScalingDegrees &degrees, Operation *scope, bool orLocal);

/// Those of `found` that are free together: each proof holds the others fixed,
/// whatever they depend on.
template <typename T, typename IsFreeT>
SmallVector<T> keepFree(SmallVector<T> found, IsFreeT isFree) {
  for (bool changed = true; changed;) {
    SmallVector<T> free = llvm::filter_to_vector(
        found, [&](const T &each) { return isFree(each, ArrayRef<T>(found)); });
    changed = free.size() != found.size();
    found = std::move(free);
  }
  return found;
}

/// Those of `values` that may all be shifted at once, element by element,
/// without changing what `kernel` stores.
SmallVector<Value> findFree(triton::FuncOp kernel, SmallVector<Value> values);

/// Those of `maxima` that may all be replaced by other values at once without
/// changing what `kernel` stores.
SmallVector<Value> findFreeMaxima(triton::FuncOp kernel,
                                  SmallVector<Value> maxima);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_FREEMAXIMA_H
