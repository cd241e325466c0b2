//===- RescaledLoop.h - Sums relative to a running maximum ------*- C++ -*-===//
//
// A loop carries a running maximum, m' = max(m, r), and accumulators that it
// keeps relative to it: A' = A·e^(δ(m−m')) + f(m'). Seen from any fixed M,
// Â = A·e^(δ(m−M)) the update is Â' = Â + f(M): the loop may as well use M from
// its first iteration to its last. With M = m after the loop, Â is A at the
// end. In place of m, the logarithm of a sum of all that was seen may be a
// bound of it: m' = max(ℓ, r).
//
// While nothing is seen, m' is −∞, and nothing can be relative to it. A loop
// may tell that apart: it uses, say, zero in its place. Then M, too, has to be
// finite (UnseenRows.h).
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RESCALEDLOOP_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RESCALEDLOOP_H

#include "RelativeValues.h"

namespace mlir::autodiff {

/// Whether a loop can run twice, once for what its sums are relative to and
/// once for these: it has no effects but stores, which only the second run
/// keeps.
bool canRunTwice(scf::ForOp loop);

/// Whether `loop` may as well run after `last`: nothing on the way writes.
bool canRunAfter(scf::ForOp loop, Operation *last);

/// A loop with a running maximum and what is kept relative to it.
struct RescaledLoop {
  /// The first running maximum, from this carried value on, that something is
  /// kept relative to; none if there is no other, or if the loop cannot run
  /// twice.
  static std::optional<RescaledLoop> match(scf::ForOp loop, unsigned from = 0);

  Value getCurrent() const {
    return scf::ForOp(loop).getRegionIterArg(maximum);
  }
  /// The maximum that the loop starts from.
  Value getStart() const { return scf::ForOp(loop).getInitArgs()[maximum]; }

  scf::ForOp loop;
  unsigned maximum = 0;        // carried value
  Operation *update = nullptr; // max(m, r), or max(ℓ, r)
  Value next;                  // m': what it gives, or something finite for −∞
  double delta = 0;
  /// The carried values that are rescaled.
  RelativeValues accumulators;
  /// Whether the body tells −∞ apart.
  bool isGuarded = false;
  /// What selections choose in the frame of a finite maximum.
  SmallVector<std::pair<Value, Value>> decided;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RESCALEDLOOP_H
