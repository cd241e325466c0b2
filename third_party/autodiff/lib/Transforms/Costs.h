//===- Costs.h - What moving and computing values costs ---------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_COSTS_H
#define AUTODIFF_LIB_TRANSFORMS_COSTS_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Bytes that moving a value of this type takes.
double bytesOf(Type type);

/// Bytes that might be moved in the time that a product takes.
double bytesOfProduct(triton::DotOp dot);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_COSTS_H
