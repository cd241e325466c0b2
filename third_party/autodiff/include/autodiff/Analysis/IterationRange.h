//===- IterationRange.h - Integers of an iteration --------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_ITERATIONRANGE_H
#define AUTODIFF_ANALYSIS_ITERATIONRANGE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// factor · (induction variable) + Σ coefficient · scalar + (low … high) in the
/// lanes of a tile; the scalars are the same in all iterations.
struct IterationRange {
  int64_t factor = 0, low = 0, high = 0;
  SmallVector<std::pair<Value, int64_t>> scalars;

  /// The form of an integer, or a tile of integers, in the body of `loop`.
  static std::optional<IterationRange> of(Value value, scf::ForOp loop);
  /// What is not negative in the lanes in which a comparison holds.
  static std::optional<IterationRange> marginOf(arith::CmpIOp compare,
                                                scf::ForOp loop);

  IterationRange scaled(int64_t by) const;
  IterationRange operator+(const IterationRange &other) const;

  /// The least in any lane, but for the induction variable, as an i64.
  Value emitLeast(OpBuilder &builder, Location loc) const;
};

/// An integer in 64 bits.
Value widenInteger(OpBuilder &builder, Location loc, Value value);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_ITERATIONRANGE_H
