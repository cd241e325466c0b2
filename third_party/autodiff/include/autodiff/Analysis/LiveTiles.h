//===- LiveTiles.h - How much is held of tiles at a time --------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_LIVETILES_H
#define AUTODIFF_ANALYSIS_LIVETILES_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Goes through a kernel backwards, from last uses to definitions, with the
/// operations in the order in which they stand.
class LiveTiles {
public:
  virtual ~LiveTiles() = default;

  /// What is held where that is most; if `last` is given, only between there
  /// and `first`, which is before it in the same block, or its start.
  double countMost(triton::FuncOp kernel, Operation *first = nullptr,
                   Operation *last = nullptr);

protected:
  /// Calls hold() for what `op` needs of its operands.
  virtual void use(Operation *op) = 0;
  /// Calls hold() for what the regions of `op` need of values from outside,
  /// which they may take more than once.
  virtual void useFromInside(Operation *op) = 0;

  /// Notes that `value` is held from its definition on in one of several forms,
  /// which takes `size`.
  void hold(Value value, unsigned form, double size);
  /// Notes that an operation takes so much while it runs.
  void take(double size) {
    if (isCounted)
      most = std::max(most, held + size);
  }

private:
  void define(Value value);
  void visit(Operation *op);
  void visit(Block &block);

  /// The sizes of the forms of each value.
  llvm::DenseMap<Value, llvm::SmallDenseMap<unsigned, double, 2>> live;
  double held = 0, most = 0;
  Operation *first = nullptr, *last = nullptr;
  bool isCounted = true;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_LIVETILES_H
