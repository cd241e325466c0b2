//===- BroadcastProduct.h - Sums that Triton takes for products -*- C++ -*-===//
#ifndef AUTODIFF_LIB_TARGET_BROADCASTPRODUCT_H
#define AUTODIFF_LIB_TARGET_BROADCASTPRODUCT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include <optional>

namespace mlir::autodiff {

/// A sum of a[:, :, None] * b[None, :, :], in this order, of which Triton's
/// `triton-combine` makes a product of a and b. In 3.6 and 3.7 that is one in
/// TF32, over however few elements, also where the sum is over another axis
/// than the one that a and b share, or where they do not share one; passes fail
/// for other operands than float32.
struct BroadcastProduct {
  triton::ReduceOp sum;
  arith::MulFOp factors;
  /// Tiles of two axes.
  Value lhs, rhs;

  static std::optional<BroadcastProduct> match(triton::ReduceOp sum);
  /// Whether it is the product of a and b.
  bool isProduct();
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TARGET_BROADCASTPRODUCT_H
