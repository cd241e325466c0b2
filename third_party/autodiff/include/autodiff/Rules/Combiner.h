//===- Combiner.h - What a reduction or scan combines with ------*- C++ -*-===//
#ifndef AUTODIFF_RULES_COMBINER_H
#define AUTODIFF_RULES_COMBINER_H

#include "mlir/IR/Region.h"

namespace mlir::autodiff {

enum class Combiner { Sum, Max, Min, Other };

/// The kind of a combine region of a one-value reduction or scan: a single
/// operation on its two arguments.
Combiner classifyCombiner(Region &region);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_COMBINER_H
