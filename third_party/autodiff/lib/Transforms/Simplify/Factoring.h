//===- Factoring.h - Take common factors out of sums ------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SIMPLIFY_FACTORING_H
#define AUTODIFF_LIB_TRANSFORMS_SIMPLIFY_FACTORING_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::autodiff {

/// Patterns that move factors which are constant along an axis out of
/// reductions over it, and common divisors out of sums of two.
void populateFactoringPatterns(RewritePatternSet &patterns);

/// Patterns that move factors which are the same for whole tiles out of loops
/// and branches.
void populateUniformFactorPatterns(RewritePatternSet &patterns);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SIMPLIFY_FACTORING_H
