//===- Reframing.h - Loops in the frame of a final maximum ------*- C++ -*-===//
//
// The *frame* of a sum is the maximum that its exponentials are relative to. If
// a loop with a running maximum starts from the sums of another loop, relative
// to that loop's maximum, both loops use the last maximum. Sums then go from
// one to the other unchanged (attention with a second stage for the masked
// blocks).
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_REFRAMING_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_REFRAMING_H

#include "RescaledLoop.h"
#include "autodiff/Builders/Tile.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {

/// Rewrites the loops of a kernel, in order.
class Reframing {
public:
  /// Makes `loop` use its final maxima as frames, and returns whether there are
  /// any. `getMaximum` gives the value of a final maximum: the loop's result,
  /// or a residual of it.
  bool rewrite(scf::ForOp loop,
               llvm::function_ref<Value(const RescaledLoop &)> getMaximum);

  /// Adds attributes to the rewritten loops for sums that are at least one
  /// where the maximum is finite.
  void markAttained();

private:
  /// A loop whose sums are relative to its final maximum.
  struct FramedLoop {
    RescaledLoop original;
    Value maximum;
    /// The sums that are at least one.
    SmallVector<unsigned, 2> attained;
  };

  /// The maximum that sums become relative to.
  struct Frame {
    Tile getDistance(Tile start) const;

    Value maximum;
    /// Whether one of the loops has run so far; null unless the loops treat −∞
    /// separately.
    Value hasRun;
  };

  scf::ForOp addFramed(const RescaledLoop &found, Value maximum);
  Frame createFrame(OpBuilder &b, const RescaledLoop &found, Value maximum);
  scf::ForOp createFramed(OpBuilder &b, const RescaledLoop &found, Frame frame);
  Value createInit(OpBuilder &b, const RescaledLoop &found, unsigned index,
                   ArrayRef<unsigned> axes, const Frame &frame);
  bool isAttained(const RescaledLoop &found, unsigned index);
  FramedLoop *findChained(const RescaledLoop &next, unsigned index);

  llvm::MapVector<Operation *, FramedLoop> framedLoops;
  /// The earlier loops that use the current frame.
  llvm::DenseMap<Operation *, scf::ForOp> chained;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_REFRAMING_H
