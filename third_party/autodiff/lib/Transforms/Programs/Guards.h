//===- Guards.h - Accesses under a condition --------------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_GUARDS_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_GUARDS_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The mask of an access through `pointer`, restricted to where a scalar
/// condition holds (`mask` null: all lanes).
Value guardMask(OpBuilder &builder, Location loc, Value condition, Value mask,
                Value pointer);

/// Gives a load that now has a mask zero for its other lanes, if it has no
/// value for them.
void completeOther(triton::LoadOp load);

/// `value` in the lanes that `load` loads; in other lanes the load's own value
/// for them, or zero.
Value whereLoaded(OpBuilder &builder, Value value, triton::LoadOp load);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_GUARDS_H
