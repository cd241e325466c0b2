//===- RescaledLoop.h - Sums relative to a running maximum ------*- C++ -*-===//
//
// A loop carries a running maximum, m' = max(m, r), and accumulators that it
// keeps relative to it: A' = A·e^(δ(m−m')) + f(m'). Seen from any fixed M,
// Â = A·e^(δ(m−M)) the update is Â' = Â + f(M): the loop may as well use M from
// its first iteration to its last. With M = m after the loop, Â is A at the
// end.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_RESCALEDLOOP_H
#define AUTODIFF_LIB_TRANSFORMS_RESCALEDLOOP_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// A loop with a running maximum and what is kept relative to it.
struct RescaledLoop {
  /// The first running maximum, from this carried value on, that something is
  /// kept relative to; none if there is no other, or if the loop cannot run
  /// twice.
  static std::optional<RescaledLoop> match(scf::ForOp loop, unsigned from = 0);

  scf::ForOp loop;
  unsigned maximum = 0; // carried value
  Value next;           // m' in the body
  double delta = 0;
  /// For each carried value that is rescaled: the axes along which m runs.
  llvm::DenseMap<unsigned, SmallVector<unsigned, 2>> accumulators;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_RESCALEDLOOP_H
