//===- IndirectAddress.h - Addresses with an index from memory --*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_INDIRECTADDRESS_H
#define AUTODIFF_ANALYSIS_INDIRECTADDRESS_H

#include "autodiff/Analysis/LinearForm.h"

namespace mlir::autodiff {

/// known + coefficient · index, where no form of the iteration space gives the
/// index: it is loaded, or computed from what is.
struct IndirectAddress {
  LinearForm known;
  ScalarExpr coefficient = ScalarExpr::constant(0);
  /// An integer or tile of integers; null if there is none.
  Value index;
  /// For each axis of the index, the axis of the tile of addresses.
  llvm::SmallVector<unsigned> axes;

  /// The form of an integer, a pointer (counted in elements from its base) or
  /// a tile of these; none if a pointer is of another form.
  static ReasonOr<IndirectAddress> of(Value value);
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_INDIRECTADDRESS_H
