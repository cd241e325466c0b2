//===- LoopNest.h - Loops in one another whose iterations stand alone -----===//
#ifndef AUTODIFF_LIB_TRANSFORMS_MERGE_LOOPNEST_H
#define AUTODIFF_LIB_TRANSFORMS_MERGE_LOOPNEST_H

#include "autodiff/Analysis/Contributions.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::autodiff {

/// Computes a value of a nest at `builder`, where `map` says what its induction
/// variables are; null if it depends on what a loop of the nest carries.
Value recompute(Value value, LoopNest &from, OpBuilder &builder,
                IRMapping &map);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_MERGE_LOOPNEST_H
