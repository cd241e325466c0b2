//===- Leaves.h - The operands of a tree of operations ----------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_LEAVES_H
#define AUTODIFF_SUPPORT_LEAVES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::autodiff {

/// Appends the leaves of a tree of binary operations `OpT`: a, b, c for (a + b)
/// + c.
template <typename OpT>
void collectLeaves(Value value, SmallVectorImpl<Value> &leaves) {
  if (auto op = value.getDefiningOp<OpT>()) {
    collectLeaves<OpT>(op.getLhs(), leaves);
    collectLeaves<OpT>(op.getRhs(), leaves);
    return;
  }
  leaves.push_back(value);
}

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_LEAVES_H
