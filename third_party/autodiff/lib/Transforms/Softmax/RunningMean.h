//===- RunningMean.h - Sums that a loop keeps divided -----------*- C++ -*-===//
//
// A' = A·(l/l') + g/l' with another carried value, l: what a loop has summed,
// divided by l at all times. B = A·l is a plain sum, B' = B + g.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RUNNINGMEAN_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RUNNINGMEAN_H

#include "RelativeValues.h"

namespace mlir::autodiff {

struct RunningMean {
  /// What `loop` keeps divided by the value that it carries at `weight`.
  static std::optional<RunningMean> match(scf::ForOp loop, unsigned weight);

  /// What a mean after a loop is made of.
  struct Quotient {
    Value sum, weight, hasRun;
  };
  using Quotients = llvm::DenseMap<Value, Quotient>;

  /// Carries what is summed, and divides it after the loop, if that can be
  /// done. `quotients` are those of loops before, and then of this one, too.
  bool carrySums(Quotients &quotients);

  scf::ForOp loop;
  unsigned weight = 0;
  RelativeValues means;

private:
  std::optional<SmallVector<Operation *>> findChain();
  void splitWeights(ArrayRef<Operation *> chain);
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RUNNINGMEAN_H
