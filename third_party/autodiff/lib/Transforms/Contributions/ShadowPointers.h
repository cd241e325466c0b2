//===- ShadowPointers.h - The same addresses in another buffer --*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SHADOWPOINTERS_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SHADOWPOINTERS_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/IR/Builders.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

/// Appends an argument to `kernel` for a *shadow* of its argument `primal`: a
/// buffer with the same addressing and alignment. `description` may be null.
BlockArgument appendShadow(triton::FuncOp kernel, BlockArgument primal,
                           OperandKind kind, Type element,
                           Attribute description);

/// Repeats the pointer arithmetic on an argument for its shadow, a buffer of
/// the same shape and strides, whose element type may differ.
class ShadowPointers {
public:
  /// Pointers derived from `primal` become pointers derived from `shadow`.
  ShadowPointers(BlockArgument primal, BlockArgument shadow)
      : primal(primal), shadow(shadow) {}

  /// The shadow of `pointer`. Emits an error and returns null if the operations
  /// between the argument and it cannot be repeated. Lanes of `pointer` that
  /// point into other arguments get an arbitrary address.
  Value get(Value pointer);

  /// `mask` (null: all) without the lanes of `pointer` that point into other
  /// arguments than `primal`; `pointer` has a shadow.
  Value mask(Value pointer, Value mask, OpBuilder &builder);

private:
  Type shadowType(Type pointer) const;
  Value anyAddress(Value pointer);
  Value lanes(Value pointer);

  BlockArgument primal, shadow;
  llvm::DenseMap<Value, Value> known, knownLanes;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SHADOWPOINTERS_H
