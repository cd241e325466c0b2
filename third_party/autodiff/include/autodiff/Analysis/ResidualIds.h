//===- ResidualIds.h - Residuals by their numbers ---------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_RESIDUALIDS_H
#define AUTODIFF_ANALYSIS_RESIDUALIDS_H

#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The residual of a kernel that has this number, or null.
ResidualOp findResidual(triton::FuncOp kernel, unsigned id);

/// The residual operation whose operand is this value, or null.
ResidualOp findName(Value value);

/// A number above those of all residuals of a kernel.
unsigned getNextResidualId(triton::FuncOp kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_RESIDUALIDS_H
