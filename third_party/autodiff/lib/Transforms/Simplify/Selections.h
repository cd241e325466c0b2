//===- Selections.h - Fewer choices between values and zeros ----*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SIMPLIFY_SELECTIONS_H
#define AUTODIFF_LIB_TRANSFORMS_SIMPLIFY_SELECTIONS_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::autodiff {

/// Patterns that drop what keeps lanes at zero that nobody looks at, and join
/// selections by the same condition.
void populateSelectionPatterns(RewritePatternSet &patterns);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SIMPLIFY_SELECTIONS_H
