//===- NormalizeLoops.h - The form of while loops ---------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_NORMALIZE_NORMALIZELOOPS_H
#define AUTODIFF_LIB_TRANSFORMS_NORMALIZE_NORMALIZELOOPS_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Turns while loops that count into for loops. Other while loops do all their
/// work in the body afterwards, and carry the condition and the number of
/// iterations (see findCounter).
LogicalResult normalizeLoops(triton::FuncOp kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_NORMALIZE_NORMALIZELOOPS_H
