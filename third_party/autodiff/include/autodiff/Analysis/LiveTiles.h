//===- LiveTiles.h - How much is held of tiles at a time --------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_LIVETILES_H
#define AUTODIFF_ANALYSIS_LIVETILES_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Sums up the sizes of live tiles: a walk through a kernel from its end, in
/// the order of its operations, from last uses to definitions.
class LiveTiles {
public:
  virtual ~LiveTiles() = default;

  /// The largest sum of sizes that are live at one operation. With `last`, only
  /// operations from `first` to `last` count, in one block; `first` null is the
  /// start of the block.
  double countMost(triton::FuncOp kernel, Operation *first = nullptr,
                   Operation *last = nullptr);

protected:
  /// Calls hold() for the operands that `op` needs.
  virtual void use(Operation *op) = 0;
  /// Calls hold() for values from outside that the regions of `op` need; a
  /// value may be used several times there.
  virtual void useFromInside(Operation *op) = 0;

  /// Notes that `value` is live from its definition on, in the layout `form`,
  /// which takes `size`.
  void hold(Value value, unsigned form, double size);
  /// Notes that an operation takes `size` while it runs.
  void take(double size) {
    if (isCounted)
      most = std::max(most, held + size);
  }

private:
  void define(Value value);
  void visit(Operation *op);
  void visit(Block &block);

  /// The sizes of the layouts of each live value.
  llvm::DenseMap<Value, llvm::SmallDenseMap<unsigned, double, 2>> live;
  double held = 0, most = 0;
  Operation *first = nullptr, *last = nullptr;
  bool isCounted = true;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_LIVETILES_H
