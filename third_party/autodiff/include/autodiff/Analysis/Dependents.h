//===- Dependents.h - What depends on values --------------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_DEPENDENTS_H
#define AUTODIFF_ANALYSIS_DEPENDENTS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::autodiff {

/// What a use of a value flows into: the results of its user, or the values
/// that a loop or branch copies it to.
SmallVector<Value> resultsOf(OpOperand &use);

/// The operations that depend on these values.
llvm::DenseSet<Operation *> findDependents(SmallVector<Value> values);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_DEPENDENTS_H
