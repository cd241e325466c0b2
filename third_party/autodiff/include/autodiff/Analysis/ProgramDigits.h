//===- ProgramDigits.h - What program ids are taken apart into --*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_PROGRAMDIGITS_H
#define AUTODIFF_ANALYSIS_PROGRAMDIGITS_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The numbers that a kernel takes its program ids apart into, such as the row
/// and the column of a tile: everything that it computes from program ids is a
/// function of these. They are program ids themselves where those are used for
/// more than that.
SmallVector<ScalarExpr> findProgramDigits(triton::FuncOp kernel);

/// Whether `expression` may change with `digit`, one of `digits`.
bool dependsOnDigit(const ScalarExpr &expression, const ScalarExpr &digit);

/// Those of `digits` that none of `mentioned` may change with.
SmallVector<ScalarExpr> findUnmentioned(ArrayRef<ScalarExpr> digits,
                                        ArrayRef<ScalarExpr> mentioned);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_PROGRAMDIGITS_H
