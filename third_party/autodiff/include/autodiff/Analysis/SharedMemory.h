//===- SharedMemory.h - Shared memory that products take --------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_SHAREDMEMORY_H
#define AUTODIFF_ANALYSIS_SHAREDMEMORY_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The most bytes of shared memory that a kernel's products take at a time, if
/// no loop is pipelined.
///
/// An operand is there from its definition to the last product that uses it.
/// 16-bit elements can be read transposed or not. For other sizes, elements
/// have to be contiguous along the axis that the product sums over: a tile that
/// products sum over along both axes is there twice. Results pass through
/// shared memory if their users have another layout.
///
/// With `last`, only operations from `first` to `last` count, in one block;
/// `first` null is the start of the block.
double countSharedMemory(triton::FuncOp kernel, Operation *first = nullptr,
                         Operation *last = nullptr);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SHAREDMEMORY_H
