//===- IterationForm.h - Integers of an iteration ---------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_ITERATIONFORM_H
#define AUTODIFF_ANALYSIS_ITERATIONFORM_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// factor · (induction variable) + Σ coefficient · scalar + (low … high) in the
/// lanes of a tile; the scalars are the same in all iterations.
struct IterationForm {
  int64_t factor = 0, low = 0, high = 0;
  SmallVector<std::pair<Value, int64_t>> scalars;

  /// The form of an integer, or a tile of integers, in the body of `loop`.
  static std::optional<IterationForm> of(Value value, scf::ForOp loop);
  /// What is not negative in the lanes in which a comparison holds.
  static std::optional<IterationForm> marginOf(arith::CmpIOp compare,
                                               scf::ForOp loop);

  IterationForm scaled(int64_t by) const;
  IterationForm operator+(const IterationForm &other) const;

  /// The least in any lane, but for the induction variable, as an i64.
  Value emitLeast(OpBuilder &builder, Location loc) const;
};

/// An integer in 64 bits.
Value widenInteger(OpBuilder &builder, Location loc, Value value);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_ITERATIONFORM_H
