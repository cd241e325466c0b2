//===- ScalarSum.h - Expressions as sums of multiples -----------*- C++ -*-===//
#ifndef AUTODIFF_LIB_ANALYSIS_SCALARSUM_H
#define AUTODIFF_LIB_ANALYSIS_SCALARSUM_H

#include "autodiff/Analysis/ScalarExpr.h"

namespace mlir::autodiff {

/// A sum of multiples of other expressions; a constant is a multiple of one.
class ScalarSum {
public:
  /// The sum or difference of two sums, if they have terms in common; else
  /// none.
  static std::optional<ScalarExpr>
  combine(ScalarExpr::Kind kind, const ScalarExpr &lhs, const ScalarExpr &rhs);
  /// The quotient or remainder of a sum by a positive divisor. The divisor has
  /// to divide all terms but a constant. If it does not divide that, no term
  /// may be negative.
  static std::optional<ScalarExpr>
  divide(ScalarExpr::Kind kind, const ScalarExpr &lhs, int64_t divisor);

  /// Adds `factor` · `e`; false if a multiple overflows.
  bool add(const ScalarExpr &e, int64_t factor);
  /// The positive terms, then the negative ones, and a constant last.
  ScalarExpr get() const;
  ArrayRef<std::pair<ScalarExpr, int64_t>> getTerms() const { return terms; }

private:
  bool addMultiple(const ScalarExpr &e, int64_t factor);

  SmallVector<std::pair<ScalarExpr, int64_t>> terms;
  bool hasMerged = false; // summands were multiples of the same
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_ANALYSIS_SCALARSUM_H
