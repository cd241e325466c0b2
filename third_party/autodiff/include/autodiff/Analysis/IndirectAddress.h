//===- IndirectAddress.h - Addresses with an index from memory --*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_INDIRECTADDRESS_H
#define AUTODIFF_ANALYSIS_INDIRECTADDRESS_H

#include "autodiff/Analysis/LinearForm.h"

namespace mlir::autodiff {

/// An address known + coefficient · index, where the index is not a linear
/// form: it is loaded, or computed from what is loaded. In `x[row * stride +
/// idx[j]]`, `row * stride` is known.
struct IndirectAddress {
  LinearForm known;
  ScalarExpr coefficient = ScalarExpr::constant(0);
  /// The index, an integer or tile of integers; null if there is none.
  Value index;
  /// For each axis of the index, the axis of the tile of addresses that it is.
  llvm::SmallVector<unsigned> axes;

  /// Takes an integer, a pointer (counted in elements from its base) or a tile
  /// of these apart; fails if it is not of this form.
  static ReasonOr<IndirectAddress> of(Value value);
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_INDIRECTADDRESS_H
