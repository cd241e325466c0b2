//===- Synchronization.h - Programs that wait for one another ---*- C++ -*-===//
//
// Programs of a launch may hand something on to one another: each waits for
// the one before it, or for a lock, or the last one to increment a counter adds
// up what all have stored. A *signal* is an operation by which a program may
// see that another one has come so far: a volatile load, an atomic operation
// whose result is used, or a load of which a loop asks whether it has changed.
// What a signal returns then decides whether something is loaded, and when.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_SYNCHRONIZATION_H
#define AUTODIFF_ANALYSIS_SYNCHRONIZATION_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {

class Synchronization {
public:
  explicit Synchronization(triton::FuncOp kernel);

  /// Whether `op` is a loop that ends when another program has stored
  /// something. Only the forward can run it: in other kernels, nobody may store
  /// that.
  bool isSpin(Operation *op) const { return spins.contains(op); }
  /// The outermost spin that `op` is, or is in; null if there is none.
  Operation *findSpin(Operation *op) const;

  /// Whether other programs decide if `read` happens, or when, or if what it
  /// reads counts.
  bool orders(Operation *read) const;

  /// Whether `read`, a load or an atomic operation, may see what other programs
  /// store during the launch.
  bool observes(Operation *read) const;

private:
  void collectFlow(triton::FuncOp kernel);
  void findPolls(triton::FuncOp kernel);
  void findSpins(triton::FuncOp kernel);
  void decide(triton::FuncOp kernel);
  llvm::SetVector<Value> collectSources(Value value) const;
  bool meetsDecision(Operation *read) const;
  bool isSignal(Operation *op) const;
  bool isDecided(Operation *op) const;
  bool anyDecided(ValueRange values) const;

  /// The values that each value is computed from, or whose choice it is, and
  /// the other way round.
  llvm::DenseMap<Value, SmallVector<Value>> sources, dependents;
  /// Loads in a `while` loop that its condition depends on, and those of them
  /// that read memory which the kernel writes.
  llvm::DenseSet<Operation *> polls, polling;
  llvm::DenseSet<Operation *> spins;
  /// Operations after which a program may see what others have stored, and
  /// loops with such operations.
  SmallVector<Operation *> signals, waits;
  /// Values that depend on other programs: results of signals, and what is
  /// computed from them.
  llvm::DenseSet<Value> decided;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SYNCHRONIZATION_H
