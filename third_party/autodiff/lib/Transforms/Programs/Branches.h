//===- Branches.h - Branches with further results ---------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_BRANCHES_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_BRANCHES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// Adds a result to a branch, which it replaces: a value of each side, or from
/// outside. There may have been no else.
Value addResult(scf::IfOp &branch, Value onTrue, Value onFalse);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_BRANCHES_H
