//===- ProgramDigits.h - What program ids are taken apart into --*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_PROGRAMDIGITS_H
#define AUTODIFF_ANALYSIS_PROGRAMDIGITS_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The integers that a kernel computes from program ids by division and
/// remainder, such as the row and the column of a tile: everything else that it
/// computes from program ids is a function of these. A program id that is used
/// in other ways is a digit itself. A number that addresses use both whole and
/// divided (a head, and the group of heads that share keys) is replaced by
/// quotient and remainder.
SmallVector<ScalarExpr> findProgramDigits(triton::FuncOp kernel);

/// whole = quotient · divisor + remainder
struct Division {
  ScalarExpr quotient, remainder, divisor;
};

/// The division whose quotient and remainder are among `digits` and whose whole
/// is this number; none if there is none.
std::optional<Division> findDivision(const ScalarExpr &whole,
                                     ArrayRef<ScalarExpr> digits);

/// Whether a number is one of `digits`, or computed from them alone.
bool isMadeOf(ArrayRef<ScalarExpr> digits, const ScalarExpr &number);

/// Whether `expression` may change with `digit`, one of `digits`.
bool dependsOnDigit(const ScalarExpr &expression, const ScalarExpr &digit);

/// Those of `digits` on which none of `mentioned` depends.
SmallVector<ScalarExpr> findUnmentioned(ArrayRef<ScalarExpr> digits,
                                        ArrayRef<ScalarExpr> mentioned);

/// Whether two numbers that are made of program ids occur in all combinations:
/// they are of different axes of the grid, or quotient and remainder of one
/// division.
bool areIndependent(const ScalarExpr &a, const ScalarExpr &b);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_PROGRAMDIGITS_H
