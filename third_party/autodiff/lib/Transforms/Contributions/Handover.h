//===- Handover.h - What one kernel leaves for another ----------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_HANDOVER_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_HANDOVER_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Values in the outermost block of a kernel that it stores for other kernels.
/// Otherwise each of their programs would compute them again.
class Handover {
public:
  /// The programs of the other kernels have numbers for the same `digits` of
  /// program ids.
  Handover(triton::FuncOp kernel, ArrayRef<ScalarExpr> digits)
      : kernel(kernel), digits(digits) {}

  /// Chooses values by a minimum cut (the cost is bytes moved) between memory
  /// and the values that loops in the outermost block need for their `results`.
  /// Stores those that are not in memory yet.
  void leave(ArrayRef<Value> results);

  /// Pairs of a value and the operation that loads it. The loads are templates,
  /// which `kernel` does not use.
  ArrayRef<std::pair<Value, Value>> get() const { return reloaded; }

  /// The bytes that each program of another kernel loads because of the last
  /// `leave`.
  double getBytes() const;

  /// Whether another kernel could compute the last values again: they need no
  /// loop and no product.
  bool isOptional() const { return optional; }

  /// Undoes the last `leave`.
  void undo();

private:
  triton::FuncOp kernel;
  ArrayRef<ScalarExpr> digits;
  SmallVector<std::pair<Value, Value>> reloaded;
  /// The state before the last `leave`, and what that created.
  size_t before = 0;
  bool optional = true;
  SmallVector<Operation *> created;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_HANDOVER_H
