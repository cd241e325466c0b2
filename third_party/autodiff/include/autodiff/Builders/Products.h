//===- Products.h - Products over more elements -----------------*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_PRODUCTS_H
#define AUTODIFF_BUILDERS_PRODUCTS_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Makes the summed axis of a product `factor` times as long, with zeros
/// between the elements: a₀ 0 a₁ 0 … · b₀ 0 b₁ 0 ….
void spreadSum(triton::DotOp dot, int64_t factor);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_PRODUCTS_H
