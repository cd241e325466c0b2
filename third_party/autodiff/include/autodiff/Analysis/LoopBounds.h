//===- LoopBounds.h - What loops and branches say of numbers ----*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_LOOPBOUNDS_H
#define AUTODIFF_ANALYSIS_LOOPBOUNDS_H

#include "autodiff/Analysis/Constraints.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// What holds where a loop or branch runs the block that `op` is in; none if
/// that is not a matter of bounds.
Constraints boundsAround(Operation *op);

/// What holds if a loop has an iteration; none if that is not a matter of
/// bounds.
Constraints boundsOfRunning(scf::ForOp loop, ScalarExpr::From from);

/// The greatest number of a loop's last iteration, as a form: an end that is
/// reached in whole steps is a step behind it. None if that is not seen.
std::optional<LinearForm> findLast(scf::ForOp loop);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_LOOPBOUNDS_H
