//===- Selections.h - Fewer choices between values and zeros ----*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SIMPLIFY_SELECTIONS_H
#define AUTODIFF_LIB_TRANSFORMS_SIMPLIFY_SELECTIONS_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::autodiff {

/// Patterns that remove selections whose zeros nobody uses, and merge
/// selections by the same condition.
void populateSelectionPatterns(RewritePatternSet &patterns);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SIMPLIFY_SELECTIONS_H
