//===- Axis.h - Elements and their neighbours along an axis -----*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_AXIS_H
#define AUTODIFF_BUILDERS_AXIS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::autodiff {

/// One axis of tiles of some shape. For every element of such a tile, its
/// position along the axis and its neighbours there.
class Axis {
public:
  Axis(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, unsigned axis)
      : b(builder), loc(loc), shape(shape), axis(axis) {}

  /// The position of each element along the axis, as a tile of i32.
  Value position() const;

  /// A condition: true in the elements whose position is `where`.
  Value isAt(int64_t where) const;
  Value isFirst() const { return isAt(0); }
  Value isLast() const { return isAt(shape[axis] - 1); }

  /// For each element, the one before it, or after it, along the axis; at the
  /// end, the element itself.
  SmallVector<Value> before(ValueRange tiles) const {
    return neighbours(tiles, /*reverse=*/false);
  }
  SmallVector<Value> after(ValueRange tiles) const {
    return neighbours(tiles, /*reverse=*/true);
  }

private:
  Value integer(int64_t value) const;
  SmallVector<Value> neighbours(ValueRange tiles, bool reverse) const;

  OpBuilder &b;
  Location loc;
  SmallVector<int64_t> shape;
  unsigned axis;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_AXIS_H
