//===- LoopSums.h - What loops add up ---------------------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_TILES_LOOPSUMS_H
#define AUTODIFF_LIB_TRANSFORMS_TILES_LOOPSUMS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::autodiff {

/// A value that a loop carries, to which each iteration adds.
struct LoopSum {
  unsigned carried;
  /// What it adds, by additions or as what products add to; products
  /// themselves, too. Nothing else uses these values.
  SmallVector<Value> terms;
};

/// The sums of floats that a loop carries, and does not use otherwise.
SmallVector<LoopSum> findLoopSums(scf::ForOp loop);

/// Takes one of its terms out of a sum.
void dropTerm(RewriterBase &rewriter, Value term);

/// Lets a loop add `term`, a value of its iterations, to zeros of the term's
/// shape with elements `element`. The sum is the last result of the loop that
/// takes its place.
scf::ForOp addLoopSum(RewriterBase &rewriter, scf::ForOp loop, Value term,
                      Type element);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_TILES_LOOPSUMS_H
