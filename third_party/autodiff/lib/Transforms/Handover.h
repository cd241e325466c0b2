//===- Handover.h - What one kernel leaves for another ----------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_HANDOVER_H
#define AUTODIFF_LIB_TRANSFORMS_HANDOVER_H

#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {

/// Values at the outer level of a kernel that it stores for another one, which
/// would otherwise compute them again in each of its programs.
class Handover {
public:
  /// Chooses by a minimum cut (cost: bytes moved) between memory and what
  /// `loops`, at the outer level of `kernel`, need for their `results`.
  Handover(triton::FuncOp kernel, ArrayRef<Value> results);

  /// Values and what loads them again, in code that is not used in `kernel`.
  ArrayRef<std::pair<Value, Value>> get() const { return reloaded; }

  /// Takes it all back.
  void undo();

private:
  triton::FuncOp kernel;
  SmallVector<std::pair<Value, Value>> reloaded;
  SmallVector<Operation *> created;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_HANDOVER_H
