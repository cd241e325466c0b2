//===- LoopNest.h - Loops in one another whose iterations stand alone -----===//
#ifndef AUTODIFF_LIB_TRANSFORMS_MERGE_LOOPNEST_H
#define AUTODIFF_LIB_TRANSFORMS_MERGE_LOOPNEST_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::autodiff {

/// Parallel loops in one another, the outermost first.
using LoopNest = SmallVector<scf::ForOp, 2>;

/// The parallel loops that an operation stands in, of which the outermost
/// stands at the outer level of a kernel; none if they are not all like that.
std::optional<LoopNest> getLoopNest(Operation *op);

/// Computes a value of a nest at `builder`, where `map` says what its induction
/// variables are; null if it depends on what a loop of the nest carries.
Value recompute(Value value, LoopNest &from, OpBuilder &builder,
                IRMapping &map);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_MERGE_LOOPNEST_H
