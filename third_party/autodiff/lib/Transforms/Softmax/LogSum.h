//===- LogSum.h - The logarithm of a sum, as a loop carries it --*- C++ -*-===//
//
// A loop may carry ℓ with ℓ' = c + k·log(e^((ℓ−c)/k) + s). If c is the same in
// all iterations, L = e^((ℓ−c)/k) is a plain sum: L' = L + s. If the results of
// an iteration do not depend on c, c may be the value of ℓ after the loop.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_LOGSUM_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_LOGSUM_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

struct LogSum {
  /// The carried value at `index`, if it is the logarithm of a sum.
  static std::optional<LogSum> match(scf::ForOp loop, unsigned index);

  /// Replaces a c that the loop computes by the final ℓ, in a second copy of
  /// the loop, which is returned. None if that is not possible. The final ℓ
  /// becomes a residual, `id` if it is none yet. If it continues the sums of
  /// loops `before`, these are repeated with the same c.
  std::optional<LogSum> fixLevel(unsigned id, ArrayRef<LogSum> before);

  /// Carries L in place of ℓ, if possible, and makes the final ℓ the residual
  /// `id`, which the user's kernel does not have.
  bool carrySum(unsigned id);

  scf::ForOp loop;
  unsigned index = 0;
  Value level;     // c
  double unit = 1; // k
  Value terms;     // e^((ℓ−c)/k) + s
  /// The exponentials e^((ℓ−c)/k) in the loop.
  SmallVector<Operation *, 1> exponentials;

private:
  void chain(ArrayRef<LogSum> before);
  Value getStart(OpBuilder &b);
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_LOGSUM_H
