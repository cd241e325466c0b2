//===- WeightedMeans.h - Sums divided by their weights ----------*- C++ -*-===//
//
// Attention and softmax store means: Σ wᵢ·vᵢ, divided by a sum of the weights
// wᵢ, none of which is negative. (More may be added to the divisor.) So a mean
// of numbers of a type is not larger than the largest of them. It is not
// finer, either: what is lost when it is rounded to that type is at most half
// of the last place of one of the numbers.
//
// The sums may be carried by a loop that scales both by the same number in
// each iteration, as an online softmax does. The proof is by induction over
// iterations, in exact arithmetic.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_WEIGHTEDMEANS_H
#define AUTODIFF_ANALYSIS_WEIGHTEDMEANS_H

#include "mlir/IR/Value.h"

namespace mlir::autodiff {

/// Whether `value` is a weighted mean of numbers that the type `element` has,
/// or zero.
bool isMeanOf(Value value, Type element);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_WEIGHTEDMEANS_H
