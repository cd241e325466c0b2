//===- Reframing.h - Loops in the frame of a final maximum ------*- C++ -*-===//
//
// Where a loop with a running maximum starts from what another one has left, in
// the frame of the maximum that it starts from, the other one uses the last
// maximum as well: sums then go from one to the other as they are (attention
// that masks in a second stage).
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
  /// Puts `loop` in the frames of all its final maxima, and returns whether
  /// there are any. `getMaximum` says which value is to be that of what was
  /// found: the loop's result, or a residual of it.
  bool rewrite(scf::ForOp loop,
               llvm::function_ref<Value(const RescaledLoop &)> getMaximum);

  /// Marks the rewritten loops with their sums that are at least one where the
  /// maximum is finite and depends on what is summed.
  void markAttained();

private:
  /// A loop in the frame of its final maximum.
  struct FramedLoop {
    RescaledLoop original;
    Value maximum;
    /// The sums that are at least one.
    SmallVector<unsigned, 2> attained;
  };

  /// The frame that loops change to.
  struct Frame {
    Tile getDistance(Tile start) const;

    Value maximum;
    /// Whether one of them has run so far; null unless they tell −∞ apart.
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
  /// The loops before the current one, in its frame.
  llvm::DenseMap<Operation *, scf::ForOp> chained;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_REFRAMING_H
