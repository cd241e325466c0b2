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

/// Of `op`, a broadcast or an expand_dims with another axis than this one: what
/// it makes of `first`, values of its operand without the operand's `axis`, for
/// the same lanes of its result. What is to be done along `axis` of the result
/// is done along `getSourceAxis` of the operand.
Value spreadFirstLane(OpBuilder &builder, Operation *op, Value first,
                      unsigned axis);
unsigned getSourceAxis(Operation *op, unsigned axis);

/// Whether all lanes of `tile` along `axis` are the same.
bool isUniformAlong(Value tile, unsigned axis);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_FIRSTLANE_H
