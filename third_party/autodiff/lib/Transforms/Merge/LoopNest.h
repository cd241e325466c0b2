//===- LoopNest.h - Loops in one another whose iterations stand alone -----===//
#ifndef AUTODIFF_LIB_TRANSFORMS_MERGE_LOOPNEST_H
#define AUTODIFF_LIB_TRANSFORMS_MERGE_LOOPNEST_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::autodiff {

/// Nested parallel loops (ParallelLoop.h), the outermost first.
using LoopNest = SmallVector<scf::ForOp, 2>;

/// The nest of parallel loops around an operation, of which the outermost is in
/// the outermost block of a kernel; none if one of the loops is not parallel.
std::optional<LoopNest> getLoopNest(Operation *op);

/// Emits a value of a nest at `builder`; `map` gives the new induction
/// variables. Null if it depends on a carried value of a loop in the nest.
Value recompute(Value value, LoopNest &from, OpBuilder &builder,
                IRMapping &map);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_MERGE_LOOPNEST_H
