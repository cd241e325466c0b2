//===- RepeatedLoads.h - Loads of what a program has ------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_REPEATEDLOADS_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_REPEATEDLOADS_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Removes repeated loads outside of loops. A load from the same addresses as
/// an earlier load is replaced if nothing writes to that argument. A load from
/// addresses that were stored to is replaced if only stores of `distinct` write
/// to the argument: no two lanes or programs of these store to the same
/// element.
void dropRepeatedLoads(triton::FuncOp kernel,
                       ArrayRef<triton::StoreOp> distinct);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_REPEATEDLOADS_H
