//===- BlockMaxima.h - Exponentials relative to a block's own ---*- C++ -*-===//
//
// A loop takes a block's exponentials relative to the block's own maximum r,
// and then corrects them by e^(r−m'), m' = max(m, r). Nothing that comes of an
// iteration depends on r then, and m' may be taken from the start.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_BLOCKMAXIMA_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_BLOCKMAXIMA_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::autodiff {

/// Has `loop` use its running maxima in place of those of its blocks, where it
/// is proved that it may use any other number.
void useRunningMaxima(scf::ForOp loop);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_BLOCKMAXIMA_H
