//===- Branches.h - Branches and their sides --------------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_BRANCHES_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_BRANCHES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// The block of a branch that does something, if the other one does nothing.
Block *findWork(scf::IfOp branch);

/// Replaces a branch by one with a further result; the values are defined
/// inside the sides, or outside. The branch may have had no else.
Value addResult(scf::IfOp &branch, Value onTrue, Value onFalse);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_BRANCHES_H
