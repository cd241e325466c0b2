//===- Synchronization.h - Programs that wait for one another ---*- C++ -*-===//
//
// Programs of a launch can hand values on to one another: the last one that a
// counter lets through adds up what all have stored, or each waits at a lock
// until it is its turn. What atomic operations or volatile loads return decides
// then whether something is loaded, and when.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_SYNCHRONIZATION_H
#define AUTODIFF_ANALYSIS_SYNCHRONIZATION_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::autodiff {

class Synchronization {
public:
  explicit Synchronization(triton::FuncOp kernel);

  /// Whether what other programs do decides if `read` is, or when.
  bool orders(Operation *read) const;

private:
  bool mark(Operation *op);
  bool isDecided(Operation *op) const;
  bool anyMarked(ValueRange values) const;

  /// What others decide: signals, and what is computed of them.
  llvm::DenseSet<Value> decided;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SYNCHRONIZATION_H
