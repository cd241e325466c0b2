//===- LoopBounds.h - What loops and branches say of numbers ----*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_LOOPBOUNDS_H
#define AUTODIFF_ANALYSIS_LOOPBOUNDS_H

#include "autodiff/Analysis/Constraints.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// The constraints that hold in the block of `op`, since the loop or branch
/// around it runs that block. None if its condition is no bound.
Constraints boundsAround(Operation *op);

/// The constraints that hold if a loop has an iteration; none if its condition
/// is no bound.
Constraints boundsOfRunning(scf::ForOp loop, ScalarExpr::From from);

/// The induction variable in the last iteration, as a linear form: `end - step`
/// where whole steps reach the end. None if that is not known.
std::optional<LinearForm> findLast(scf::ForOp loop);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_LOOPBOUNDS_H
