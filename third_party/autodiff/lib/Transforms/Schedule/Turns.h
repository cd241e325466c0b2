//===- Turns.h - Contributions one after the other --------------*- C++ -*-===//
//
// A kernel may load a tensor in several places: as rows and as columns, in two
// loops of which the order matters. Each of them may reach every element once,
// and all of them together do not. Then they take turns: the first one stores,
// and later ones add to what is there, without atomics. Between two turns is
// the end of a kernel; or a barrier, if each address is the same program's in
// both.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_TURNS_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_TURNS_H

#include "autodiff/Analysis/Contributions.h"

namespace mlir::autodiff {

/// Contributions of a kernel to the gradient of one argument.
struct Turn {
  triton::FuncOp kernel;
  SmallVector<Contribution> ops;
  /// That they reach no address twice; null if they may meet, in atomics.
  CheckAttr check;
  /// Whether they reach all that the check allows for.
  bool isExact = false;
  /// Whether the turn before is the same kernel's.
  bool isBehindBarrier = false;
  /// Why they may meet, if they may.
  Reason why;

  bool isAtomic() const { return !check; }
  /// The operation at the outer level of the kernel that it begins with.
  Operation *getOutermost() const;
};

/// The turns of all contributions to an argument, in the order in which
/// `kernels` run; none if there are less than two, or if all would be atomic.
SmallVector<Turn, 0> findTurns(ArrayRef<triton::FuncOp> kernels,
                               unsigned argument, Contributions &all);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_TURNS_H
