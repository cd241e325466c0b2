//===- ResidualIds.h - Residuals by their numbers ---------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_RESIDUALIDS_H
#define AUTODIFF_ANALYSIS_RESIDUALIDS_H

#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The residual of a kernel that has this number, or null.
ResidualOp findResidual(triton::FuncOp kernel, unsigned id);

/// The residual that names a value, or null.
ResidualOp findName(Value value);

/// A number that no residual of a kernel has, nor any larger one.
unsigned getNextResidualId(triton::FuncOp kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_RESIDUALIDS_H
