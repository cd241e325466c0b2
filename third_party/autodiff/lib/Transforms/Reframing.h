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
  /// Puts `loop` in the frames of all its final maxima, and returns whether
  /// there are any. `getMaximum` says which value is to be that of what was
  /// found: the loop's result, or a residual of it.
  bool rewrite(scf::ForOp loop,
               llvm::function_ref<Value(const RescaledLoop &)> getMaximum);

private:
  /// A loop in the frame of its final maximum.
  struct FramedLoop {
    RescaledLoop original;
    Value maximum;
  };

  scf::ForOp addFramed(const RescaledLoop &found, Value maximum);
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
