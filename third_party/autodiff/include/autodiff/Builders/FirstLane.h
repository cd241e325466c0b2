//===- FirstLane.h - What a tile has at the start of an axis ----*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_FIRSTLANE_H
#define AUTODIFF_BUILDERS_FIRSTLANE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include <optional>

namespace mlir::autodiff {

/// The first lane along `axis` of a tile of integers or pointers, computed
/// anew: a tile without that axis, or a scalar. Null if that needs more than
/// arithmetic. `known` has first lanes of some tiles.
Value getFirstLane(OpBuilder &builder, Value tile, unsigned axis,
                   const IRMapping &known = {});

/// The axis of the operand of `op`, which moves elements, that gives an axis of
/// its result its lanes; none if all are the same, or `op` does anything else.
std::optional<unsigned> getSourceAxis(Operation *op, unsigned axis);
/// What `op` makes of `first`, values of its operand without that axis, for the
/// same lanes of its result without `axis`.
Value spreadFirstLane(OpBuilder &builder, Operation *op, Value first,
                      unsigned axis);

/// Whether all lanes of `tile` along `axis` are the same.
bool isUniformAlong(Value tile, unsigned axis);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_FIRSTLANE_H
