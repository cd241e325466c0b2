//===- Constraints.h - Masks as bounds of sums ------------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_CONSTRAINTS_H
#define AUTODIFF_ANALYSIS_CONSTRAINTS_H

#include "autodiff/Analysis/LinearForm.h"

namespace mlir::autodiff {

/// Σ terms < bound, for the lanes that a mask lets through.
struct Constraint {
  LinearForm form; // without a constant
  ScalarExpr bound = ScalarExpr::constant(0);
};
using Constraints = ReasonOr<llvm::SmallVector<Constraint>>;
/// Conjunctions of which one holds.
using Alternatives = llvm::SmallVector<llvm::SmallVector<Constraint, 0>, 0>;

/// lhs < rhs + slack.
Constraint lessThan(const LinearForm &lhs, const LinearForm &rhs,
                    int64_t slack = 0);

/// Whether no lane fails: −Σ (indices, if they are not negative) < a positive
/// bound.
bool holdsAlways(const Constraint &constraint);

/// The forms of which a number is the smallest; none if it is none of these.
ReasonOr<llvm::SmallVector<LinearForm>>
smallestOf(Value value, ScalarExpr::From from = ScalarExpr::From::Launch);

/// lhs < rhs + slack, but for what is always true: of a maximum of numbers, or
/// of what is less than a minimum, for all of them.
Constraints lessThan(Value lhs, Value rhs, int64_t slack,
                     ScalarExpr::From from);

/// The conjunction of constraints that `mask` (null: true) is, with forms
/// `from` memory if it may be read; none if it is something else.
Constraints constraintsOf(Value mask,
                          ScalarExpr::From from = ScalarExpr::From::Launch);

/// The same of what is true where `condition`, of a branch, is not.
Constraints constraintsOfNot(Value condition);

/// Conjunctions of constraints of which one holds, if `condition` does, or if
/// it does not (`holds` is false); none if it is something else.
std::optional<Alternatives> alternativesOf(Value condition, bool holds);

/// Those of the conditions in the conjunction `mask` that are constraints.
llvm::SmallVector<Constraint>
knownConstraintsOf(Value mask,
                   ScalarExpr::From from = ScalarExpr::From::Launch);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_CONSTRAINTS_H
