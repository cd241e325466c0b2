//===- FirstLane.h - What a tile has at the start of an axis ----*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_FIRSTLANE_H
#define AUTODIFF_BUILDERS_FIRSTLANE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::autodiff {

/// The first lane along `axis` of a tile of integers or pointers, computed
/// anew: a tile without that axis, or a scalar. Null if that needs more than
/// arithmetic. `known` has first lanes of some tiles.
Value getFirstLane(OpBuilder &builder, Value tile, unsigned axis,
                   const IRMapping &known = {});

/// For `op`, a broadcast or an expand_dims of another axis: computes the first
/// lane of its result from `first`, the first lane of its operand. Axis `axis`
/// of the result is `getSourceAxis` of the operand.
Value spreadFirstLane(OpBuilder &builder, Operation *op, Value first,
                      unsigned axis);
unsigned getSourceAxis(Operation *op, unsigned axis);

/// Whether all lanes of `tile` along `axis` have the same value.
bool isUniformAlong(Value tile, unsigned axis);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_FIRSTLANE_H
