//===- RunningMean.h - Sums that a loop keeps divided -----------*- C++ -*-===//
//
// A loop may carry A' = A·(l/l') + g/l' beside a sum l: a sum that is divided
// by l at all times. B = A·l is a plain sum, B' = B + g.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RUNNINGMEAN_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RUNNINGMEAN_H

#include "RelativeValues.h"

namespace mlir::autodiff {

struct RunningMean {
  /// The carried value that `loop` keeps divided by the one at `weight`.
  static std::optional<RunningMean> match(scf::ForOp loop, unsigned weight);

  /// The sums that a mean is computed from after a loop.
  struct Quotient {
    Value sum, weight, hasRun;
  };
  using Quotients = llvm::DenseMap<Value, Quotient>;

  /// Carries the sum, and divides after the loop, if possible. `quotients` are
  /// those of earlier loops, and afterwards of this one, too.
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
