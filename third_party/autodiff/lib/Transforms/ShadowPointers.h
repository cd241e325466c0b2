//===- ShadowPointers.h - The same addresses in another buffer --*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SHADOWPOINTERS_H
#define AUTODIFF_LIB_TRANSFORMS_SHADOWPOINTERS_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

/// Repeats the pointer arithmetic on a primal argument for a shadow buffer of
/// the same shape and strides, whose element type may differ.
class ShadowPointers {
public:
  /// Pointers derived from `primal` become pointers derived from `shadow`.
  ShadowPointers(BlockArgument primal, BlockArgument shadow)
      : primal(primal), shadow(shadow) {}

  /// The shadow of `pointer`; emits an error and returns null if the way from
  /// the argument to it cannot be repeated.
  Value get(Value pointer);

private:
  Type shadowType(Type pointer) const;

  BlockArgument primal, shadow;
  llvm::DenseMap<Value, Value> known;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SHADOWPOINTERS_H
