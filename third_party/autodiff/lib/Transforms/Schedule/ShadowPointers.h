//===- ShadowPointers.h - The same addresses in another buffer --*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SHADOWPOINTERS_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SHADOWPOINTERS_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/IR/Builders.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

/// An argument of `kernel` for a buffer with the addressing of its argument
/// `primal`, aligned as that is; `description` may be null.
BlockArgument appendShadow(triton::FuncOp kernel, BlockArgument primal,
                           OperandKind kind, Type element,
                           Attribute description);

/// Repeats the pointer arithmetic on a primal argument for a shadow buffer of
/// the same shape and strides, whose element type may differ.
class ShadowPointers {
public:
  /// Pointers derived from `primal` become pointers derived from `shadow`.
  ShadowPointers(BlockArgument primal, BlockArgument shadow)
      : primal(primal), shadow(shadow) {}

  /// The shadow of `pointer`; emits an error and returns null if the way from
  /// the argument to it cannot be repeated. Lanes of `pointer` that are based
  /// on other arguments give some address.
  Value get(Value pointer);

  /// `mask` (null: all) without the lanes of `pointer`, which has a shadow,
  /// that are based on other arguments than the primal's.
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
