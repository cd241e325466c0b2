//===- ProgramDigits.h - What program ids are taken apart into --*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_PROGRAMDIGITS_H
#define AUTODIFF_ANALYSIS_PROGRAMDIGITS_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The numbers that a kernel takes its program ids apart into, such as the row
/// and the column of a tile: everything that it computes from program ids is a
/// function of these. They are program ids themselves where those are used for
/// more than that. A number that addresses use whole as well as divided (a
/// head, and the group of heads that share keys) is taken apart into the
/// quotient and the remainder.
SmallVector<ScalarExpr> findProgramDigits(triton::FuncOp kernel);

/// whole = quotient · divisor + remainder
struct Division {
  ScalarExpr quotient, remainder, divisor;
};

/// What a number is taken apart into by `digits`; none if it is not.
std::optional<Division> findDivision(const ScalarExpr &whole,
                                     ArrayRef<ScalarExpr> digits);

/// Whether a number is one of `digits`, or made up of such.
bool isMadeOf(ArrayRef<ScalarExpr> digits, const ScalarExpr &number);

/// Whether `expression` may change with `digit`, one of `digits`.
bool dependsOnDigit(const ScalarExpr &expression, const ScalarExpr &digit);

/// Those of `digits` that none of `mentioned` may change with.
SmallVector<ScalarExpr> findUnmentioned(ArrayRef<ScalarExpr> digits,
                                        ArrayRef<ScalarExpr> mentioned);

/// Whether two numbers that program ids determine come in all pairs: they are
/// of different axes, or quotient and remainder of one division.
bool areIndependent(const ScalarExpr &a, const ScalarExpr &b);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_PROGRAMDIGITS_H
