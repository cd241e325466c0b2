//===- Reach.h - What depends on values -------------------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_REACH_H
#define AUTODIFF_ANALYSIS_REACH_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::autodiff {

/// What a use of a value computes from it: the results of its user, or what a
/// loop or branch hands on.
SmallVector<Value> resultsOf(OpOperand &use);

/// The operations that these values reach.
llvm::DenseSet<Operation *> reach(SmallVector<Value> values);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_REACH_H
