//===- RepeatedLoads.h - Loads of what a program has ------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_REPEATEDLOADS_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_REPEATEDLOADS_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Replaces loads in a kernel, outside of loops, of what it has: what it has
/// loaded from the same addresses, if nothing writes to that argument, or has
/// stored to them, if that is done by nothing but `distinct`, stores no two
/// lanes or programs of which are to the same element.
void dropRepeatedLoads(triton::FuncOp kernel,
                       ArrayRef<triton::StoreOp> distinct);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_REPEATEDLOADS_H
