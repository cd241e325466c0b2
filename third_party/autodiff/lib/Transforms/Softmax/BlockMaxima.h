//===- BlockMaxima.h - Exponentials relative to a block's own ---*- C++ -*-===//
//
// A loop may compute a block's exponentials relative to the block's own maximum
// r, and then correct them by e^(r−m'), with m' = max(m, r). The result of an
// iteration does not depend on r then, so m' may be used instead of r.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_BLOCKMAXIMA_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_BLOCKMAXIMA_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// Makes `loop` use its running maxima instead of those of its blocks, where it
/// is proved that any other number would do.
void useRunningMaxima(scf::ForOp loop);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_BLOCKMAXIMA_H
