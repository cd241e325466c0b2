//===- RescaledLoop.h - Sums relative to a running maximum ------*- C++ -*-===//
//
// A loop carries a running maximum, m' = max(m, r), and accumulators relative
// to it: A' = A·e^(δ(m−m')) + f(m'). Relative to any fixed M, with Â =
// A·e^(δ(m−M)), the update is Â' = Â + f(M). So the loop may use M in all
// iterations. If M is the final m, Â is A at the end. Instead of m, the
// logarithm of the sum so far may be carried: m' = max(ℓ, r).
//
// As long as everything in a row is masked, m' is −∞, and nothing can be
// relative to it. A loop may treat that separately, and use zero in its place,
// for example. Then M has to be finite, too (UnseenRows.h).
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RESCALEDLOOP_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RESCALEDLOOP_H

#include "RelativeValues.h"

namespace mlir::autodiff {

/// Whether a loop can run twice, once for the maxima and once for the sums: it
/// has no effects but stores, which only the second run keeps.
bool canRunTwice(scf::ForOp loop);

/// Whether `loop` may run after `last` instead: nothing in between writes.
bool canRunAfter(scf::ForOp loop, Operation *last);

/// A loop with a running maximum and accumulators relative to it.
struct RescaledLoop {
  /// The first running maximum, from carried value `from` on, with values
  /// relative to it. None if there is none, or if the loop cannot run twice.
  static std::optional<RescaledLoop> match(scf::ForOp loop, unsigned from = 0);

  Value getCurrent() const {
    return scf::ForOp(loop).getRegionIterArg(maximum);
  }
  /// The maximum's initial value.
  Value getStart() const { return scf::ForOp(loop).getInitArgs()[maximum]; }

  scf::ForOp loop;
  unsigned maximum = 0;        // carried value
  Operation *update = nullptr; // max(m, r), or max(ℓ, r)
  Value next;                  // m': what it gives, or something finite for −∞
  double delta = 0;
  /// The accumulators, which are rescaled.
  RelativeValues accumulators;
  /// Whether the body treats −∞ separately.
  bool isGuarded = false;
  /// Selections, with the side that is chosen if the maximum is finite.
  SmallVector<std::pair<Value, Value>> decided;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_RESCALEDLOOP_H
