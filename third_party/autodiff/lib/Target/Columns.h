//===- Columns.h - Reductions to scalars by way of columns ------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TARGET_COLUMNS_H
#define AUTODIFF_LIB_TARGET_COLUMNS_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Replaces a reduction of tiles of one axis. They get a second axis of one
/// element, and their column is reduced.
void reduceColumns(triton::ReduceOp reduce);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TARGET_COLUMNS_H
