//===- IterationRange.h - Integers of an iteration --------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_ITERATIONRANGE_H
#define AUTODIFF_ANALYSIS_ITERATIONRANGE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// An integer in a loop: factor · (induction variable) + Σ coefficient · scalar
/// + (low … high), with different values from low to high in the lanes of a
/// tile. The scalars are the same in all iterations.
struct IterationRange {
  int64_t factor = 0, low = 0, high = 0;
  SmallVector<std::pair<Value, int64_t>> scalars;

  /// This form of an integer, or a tile of integers, in the body of `loop`;
  /// none if it has none.
  static std::optional<IterationRange> of(Value value, scf::ForOp loop);
  /// The difference between the two sides of a comparison: not negative exactly
  /// in the lanes where it holds.
  static std::optional<IterationRange> marginOf(arith::CmpIOp compare,
                                                scf::ForOp loop);

  IterationRange scaled(int64_t by) const;
  IterationRange operator+(const IterationRange &other) const;

  /// Emits the least value of any lane, without the induction variable's part,
  /// as an i64.
  Value emitLeast(OpBuilder &builder, Location loc) const;
};

/// Sign-extends an integer to 64 bits.
Value widenInteger(OpBuilder &builder, Location loc, Value value);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_ITERATIONRANGE_H
