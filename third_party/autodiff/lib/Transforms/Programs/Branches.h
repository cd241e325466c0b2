//===- Branches.h - Branches and their sides --------------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_BRANCHES_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_BRANCHES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// The side of a branch that does something, if the other one does not.
Block *findWork(scf::IfOp branch);

/// Adds a result to a branch, which it replaces: a value of each side, or from
/// outside. There may have been no else.
Value addResult(scf::IfOp &branch, Value onTrue, Value onFalse);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_BRANCHES_H
