//===- SharedMemory.h - Shared memory that products take --------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_SHAREDMEMORY_H
#define AUTODIFF_ANALYSIS_SHAREDMEMORY_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// How many bytes of shared memory a kernel's products take, where that is
/// most, if no loop is pipelined.
///
/// An operand lies there from where it is computed or loaded until its last
/// product. The matrix unit takes elements of 16 bits transposed or not. Those
/// of another size have to follow each other along the axis that the product
/// sums over: a tile that products sum over along both of its axes is there
/// twice. And their results pass through shared memory on the way to what is
/// laid out otherwise.
///
/// If `last` is given, only what is between there and `first` counts, which is
/// before it in the same block; null is the start of that.
double countSharedMemory(triton::FuncOp kernel, Operation *first = nullptr,
                         Operation *last = nullptr);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SHAREDMEMORY_H
