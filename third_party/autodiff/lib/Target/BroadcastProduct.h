//===- BroadcastProduct.h - Sums that Triton takes for products -*- C++ -*-===//
#ifndef AUTODIFF_LIB_TARGET_BROADCASTPRODUCT_H
#define AUTODIFF_LIB_TARGET_BROADCASTPRODUCT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include <optional>

namespace mlir::autodiff {

/// A sum of a[:, :, None] * b[None, :, :], in this order, which Triton's
/// `triton-combine` turns into a product of a and b. In 3.6 and 3.7, that is a
/// TF32 product over any number of elements. It does so even if the sum is over
/// another axis than the one that a and b share, or if they share none. Its
/// passes fail for operands other than float32.
struct BroadcastProduct {
  triton::ReduceOp sum;
  arith::MulFOp factors;
  /// Tiles of rank two.
  Value lhs, rhs;

  static std::optional<BroadcastProduct> match(triton::ReduceOp sum);
  /// Whether it really is the product of a and b.
  bool isProduct();
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TARGET_BROADCASTPRODUCT_H
