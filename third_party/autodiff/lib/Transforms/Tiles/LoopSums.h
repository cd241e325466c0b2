//===- LoopSums.h - What loops add up ---------------------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_TILES_LOOPSUMS_H
#define AUTODIFF_LIB_TRANSFORMS_TILES_LOOPSUMS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::autodiff {

/// A value that a loop carries, to which each iteration adds.
struct LoopSum {
  unsigned carried;
  /// The values that are added: by additions, as accumulators of products, or
  /// as products themselves. They have no other uses.
  SmallVector<Value> terms;
};

/// The float sums that a loop carries and does not use otherwise.
SmallVector<LoopSum> findLoopSums(scf::ForOp loop);

/// Removes one of its terms from a sum.
void dropTerm(RewriterBase &rewriter, Value term);

/// Adds a sum to a loop: from zeros of the shape of `term`, a value of its
/// iterations, with element type `element`. The loop is replaced by one whose
/// last result is the sum.
scf::ForOp addLoopSum(RewriterBase &rewriter, scf::ForOp loop, Value term,
                      Type element);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_TILES_LOOPSUMS_H
