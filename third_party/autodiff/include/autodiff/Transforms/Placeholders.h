//===- Placeholders.h - Functions from kernels ------------------*- C++ -*-===//
//
// Python traces a function for given types as a kernel without arguments:
// assembly named "autodiff.cotangent 0" (or "autodiff.tangent 0"),
// "autodiff.operand 1" or "autodiff.result 0" stands for what it gets, a call
// of "autodiff.yield" takes what it returns.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_TRANSFORMS_PLACEHOLDERS_H
#define AUTODIFF_TRANSFORMS_PLACEHOLDERS_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Turns placeholders into arguments (cotangents or tangents, operands,
/// results, each in order) and the yield into a return.
LogicalResult resolvePlaceholders(triton::FuncOp function);

} // namespace mlir::autodiff

#endif // AUTODIFF_TRANSFORMS_PLACEHOLDERS_H
