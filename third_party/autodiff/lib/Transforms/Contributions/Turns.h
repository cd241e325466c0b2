//===- Turns.h - Contributions one after the other --------------*- C++ -*-===//
//
// A kernel may load a tensor in several places: by rows and by columns, or in
// two loops whose order matters. The addresses of each place may be distinct,
// but not those of all together. Then their contributions take *turns*: the
// first one stores, and later ones add without atomics. Between two turns, a
// kernel ends; or there is a barrier, if the same program has each address in
// both.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_TURNS_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_TURNS_H

#include "autodiff/Analysis/Contributions.h"

namespace mlir::autodiff {

/// Contributions of one kernel to the gradient of one argument.
struct Turn {
  triton::FuncOp kernel;
  SmallVector<Contribution> ops;
  /// That they reach no address twice; null if they may meet, in atomics.
  CheckAttr check;
  /// Whether they reach all that the check allows for.
  bool isExact = false;
  /// Whether the turn before is in the same kernel.
  bool isBehindBarrier = false;
  /// Why the addresses may not be distinct.
  Reason why;

  bool isAtomic() const { return !check; }
  /// The operation in the outermost block of the kernel with which the turn
  /// begins.
  Operation *getOutermost() const;
};

/// The turns of all contributions to an argument, in the order in which
/// `kernels` run; none if there are less than two, or if all would be atomic.
SmallVector<Turn, 0> findTurns(ArrayRef<triton::FuncOp> kernels,
                               unsigned argument, Contributions &all);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_TURNS_H
