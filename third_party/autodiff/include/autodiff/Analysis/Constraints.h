//===- Constraints.h - Masks as bounds of sums ------------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_CONSTRAINTS_H
#define AUTODIFF_ANALYSIS_CONSTRAINTS_H

#include "autodiff/Analysis/LinearForm.h"

namespace mlir::autodiff {

/// Σ terms < bound, in all lanes that a mask lets through.
struct Constraint {
  LinearForm form; // without a constant
  ScalarExpr bound = ScalarExpr::constant(0);
};
using Constraints = ReasonOr<llvm::SmallVector<Constraint>>;
/// Several conjunctions, of which one holds.
using Alternatives = llvm::SmallVector<llvm::SmallVector<Constraint, 0>, 0>;

/// The constraint lhs < rhs + slack.
Constraint lessThan(const LinearForm &lhs, const LinearForm &rhs,
                    int64_t slack = 0);

/// Whether the constraint is true in all lanes: −Σ (indices that are not
/// negative) < a positive bound.
bool holdsAlways(const Constraint &constraint);

/// The linear forms whose minimum a number is: `min(a, b)` gives both. None if
/// it is not a minimum of linear forms.
ReasonOr<llvm::SmallVector<LinearForm>>
smallestOf(Value value, ScalarExpr::From from = ScalarExpr::From::Launch);

/// The constraints that lhs < rhs + slack amounts to, without those that are
/// always true. Of a maximum on the left, or a minimum on the right, there is
/// one for each operand.
Constraints lessThan(Value lhs, Value rhs, int64_t slack,
                     ScalarExpr::From from);

/// The constraints whose conjunction `mask` is (null: true). `from` says
/// whether linear forms may read memory. None if the mask is something else.
Constraints constraintsOf(Value mask,
                          ScalarExpr::From from = ScalarExpr::From::Launch);

/// The same of the negation of `condition`: what holds in the else block.
Constraints constraintsOfNot(Value condition);

/// Conjunctions of which at least one holds if `condition` is true, or if
/// `holds` is false, if it is false. None if it is something else.
std::optional<Alternatives> alternativesOf(Value condition, bool holds);

/// The constraints among the conditions whose conjunction `mask` is; others are
/// left out.
llvm::SmallVector<Constraint>
knownConstraintsOf(Value mask,
                   ScalarExpr::From from = ScalarExpr::From::Launch);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_CONSTRAINTS_H
