//===- Handover.h - What one kernel leaves for another ----------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_HANDOVER_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_HANDOVER_H

#include "autodiff/Analysis/ScalarExpr.h"

namespace mlir::autodiff {

/// Values at the outer level of a kernel that it stores for others, which would
/// otherwise compute them again in each of their programs.
class Handover {
public:
  /// The others' programs are numbered by the same `digits` of program ids.
  Handover(triton::FuncOp kernel, ArrayRef<ScalarExpr> digits)
      : kernel(kernel), digits(digits) {}

  /// Chooses values by a minimum cut (cost: bytes moved) between memory and
  /// what loops at the outer level need for their `results`, and stores those
  /// that are not there already.
  void leave(ArrayRef<Value> results);

  /// Values and what loads them again, in code that is not used in `kernel`.
  ArrayRef<std::pair<Value, Value>> get() const { return reloaded; }

  /// What each of the others' programs loads of what was left last.
  double getBytes() const;

  /// Whether another kernel could as well compute again what was left last: no
  /// loop and no product is in it.
  bool isOptional() const { return optional; }

  /// Takes back what was left last.
  void undo();

private:
  triton::FuncOp kernel;
  ArrayRef<ScalarExpr> digits;
  SmallVector<std::pair<Value, Value>> reloaded;
  /// What was there before the last time, and what that created.
  size_t before = 0;
  bool optional = true;
  SmallVector<Operation *> created;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_HANDOVER_H
