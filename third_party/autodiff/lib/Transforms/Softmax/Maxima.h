//===- Maxima.h - What is a maximum, and how it may move --------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_MAXIMA_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_MAXIMA_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// Whether `value` is a maximum, of a tile or of what a loop has seen.
bool isMaximum(Value value);

/// The maximum of two values that `loop` carries on at `index`, or carries on
/// where it is finite, with a constant for −∞; null if there is none.
Operation *getCarriedMaximum(scf::ForOp loop, unsigned index);

/// Has the last of several maxima that an iteration takes be the one that takes
/// what `loop` carries: max(max(m, r), c) = max(m, max(r, c)).
void raiseCarriedMaxima(scf::ForOp loop);

/// The axes along which the shift of a value may run: those longer than one.
SmallVector<unsigned, 2> seedAxes(Value value);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_MAXIMA_H
