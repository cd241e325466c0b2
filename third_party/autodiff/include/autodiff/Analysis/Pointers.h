//===- Pointers.h - Where a pointer comes from ------------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_POINTERS_H
#define AUTODIFF_ANALYSIS_POINTERS_H

#include "mlir/IR/Value.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Whether `type` is a pointer or a tile of pointers.
bool isPointer(Type type);

/// The element type that a pointer or tile of pointers points to.
Type getPointee(Type type);

/// The kernel argument that `pointer` is derived from by pointer arithmetic,
/// shape operations, loops and selects; null if there is no single one.
BlockArgument getBaseArgument(Value pointer);

/// The pointer-typed operand that `op`, an operation that computes a pointer
/// from one pointer (addptr, splat, broadcast, …), derives its result from;
/// null for other operations.
OpOperand *getPointerSource(Operation *op);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_POINTERS_H
