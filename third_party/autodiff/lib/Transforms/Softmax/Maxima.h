//===- Maxima.h - What is a maximum, and how it may move --------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_MAXIMA_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_MAXIMA_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// Whether `value` is a maximum: of a tile, or over iterations of a loop.
bool isMaximum(Value value);

/// The maximum of two values that `loop` yields at `index`, or yields where it
/// is finite, with a constant for −∞; null if there is none.
Operation *getCarriedMaximum(scf::ForOp loop, unsigned index);

/// If an iteration takes several maxima, makes the last one take the carried
/// value: max(max(m, r), c) = max(m, max(r, c)).
void raiseCarriedMaxima(scf::ForOp loop);

/// The axes along which a value may have different shifts: those longer than
/// one.
SmallVector<unsigned, 2> seedAxes(Value value);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_MAXIMA_H
