//===- Guards.h - Accesses under a condition --------------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_GUARDS_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_GUARDS_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The lanes of an access through `pointer` that `mask` lets through (null: all
/// of them), where a scalar condition holds.
Value guardMask(OpBuilder &builder, Location loc, Value condition, Value mask,
                Value pointer);

/// What a load that is guarded now gives without a value of its own for other
/// lanes: zero.
void completeOther(triton::LoadOp load);

/// `value` in the lanes that `load` loads; in others what it gives them, or
/// zero.
Value whereLoaded(OpBuilder &builder, Value value, triton::LoadOp load);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_GUARDS_H
