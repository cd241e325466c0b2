//===- LogSum.h - The logarithm of a sum, as a loop carries it --*- C++ -*-===//
//
// ℓ' = c + k·log(e^((ℓ−c)/k) + s). Of a c that is the same in all iterations,
// L = e^((ℓ−c)/k) is a plain sum: L' = L + s. If nothing that comes of an
// iteration depends on its c, that may be what ℓ is after the loop.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_LOGSUM_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_LOGSUM_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

struct LogSum {
  /// What `loop` carries at `index`, if that is the logarithm of a sum.
  static std::optional<LogSum> match(scf::ForOp loop, unsigned index);

  /// Takes the final ℓ in place of a c that the loop computes, and returns the
  /// loop that does: it runs again. None if that cannot be done; the final ℓ
  /// becomes a residual, `id` if it is none. Those `before` from which it goes
  /// on are repeated with this c.
  std::optional<LogSum> fixLevel(unsigned id, ArrayRef<LogSum> before);

  /// Carries L in place of ℓ, if that can be done, and makes what is left of it
  /// the residual `id`, which the primal does not have.
  bool carrySum(unsigned id);

  scf::ForOp loop;
  unsigned index = 0;
  Value level;     // c
  double unit = 1; // k
  Value terms;     // e^((ℓ−c)/k) + s
  /// The e^((ℓ−c)/k) in the loop.
  SmallVector<Operation *, 1> exponentials;

private:
  void chain(ArrayRef<LogSum> before);
  Value getStart(OpBuilder &b);
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_LOGSUM_H
