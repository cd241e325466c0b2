//===- Reframing.h - Loops in the frame of a final maximum ------*- C++ -*-===//
//
// Where a loop with a running maximum starts from what another one has left, in
// the frame of the maximum that it starts from, the other one uses the last
// maximum as well: sums then go from one to the other as they are (attention
// that masks in a second stage).
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_REFRAMING_H
#define AUTODIFF_LIB_TRANSFORMS_REFRAMING_H

#include "RescaledLoop.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {

/// Rewrites the loops of a kernel, in order.
class Reframing {
public:
  /// Adds the loop in the frame of its final maximum after the original, of
  /// which only that `maximum` is still used (the loop's result or a residual
  /// of it), and returns it.
  scf::ForOp rewrite(const RescaledLoop &found, Value maximum);

private:
  /// A loop in the frame of its final maximum.
  struct FramedLoop {
    RescaledLoop original;
    Value maximum;
  };

  scf::ForOp createFramed(OpBuilder &b, const RescaledLoop &found, Value m);
  Value createInit(OpBuilder &b, const RescaledLoop &found, unsigned index,
                   ArrayRef<unsigned> axes, Value m);
  FramedLoop *findChained(const RescaledLoop &next, unsigned index);

  llvm::MapVector<Operation *, FramedLoop> framedLoops;
  /// The loops before the current one, in its frame.
  llvm::DenseMap<Operation *, scf::ForOp> chained;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_REFRAMING_H
