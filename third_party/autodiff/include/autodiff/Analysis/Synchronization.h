//===- Synchronization.h - Programs that wait for one another ---*- C++ -*-===//
//
// Programs of a launch may communicate: the last one to increment a counter
// adds up what all have stored, or each waits for a lock. What an atomic
// operation or volatile load returns then decides whether something is loaded,
// and when.
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

  /// Whether other programs decide if `read` happens, or when.
  bool orders(Operation *read) const;

private:
  bool mark(Operation *op);
  bool isDecided(Operation *op) const;
  bool anyMarked(ValueRange values) const;

  /// Values that depend on other programs: results of such operations, and what
  /// is computed from them.
  llvm::DenseSet<Value> decided;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SYNCHRONIZATION_H
