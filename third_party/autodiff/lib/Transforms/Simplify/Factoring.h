//===- Factoring.h - Take common factors out of sums ------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SIMPLIFY_FACTORING_H
#define AUTODIFF_LIB_TRANSFORMS_SIMPLIFY_FACTORING_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::autodiff {

/// Patterns that move factors which are uniform along an axis out of sums over
/// it, and common divisors out of sums of two.
void populateFactoringPatterns(RewritePatternSet &patterns);

/// Patterns that move factors which are uniform over whole tiles out of loops
/// and branches.
void populateUniformFactorPatterns(RewritePatternSet &patterns);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SIMPLIFY_FACTORING_H
