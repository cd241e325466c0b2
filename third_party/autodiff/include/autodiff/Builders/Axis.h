//===- Axis.h - Elements and their neighbours along an axis -----*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_AXIS_H
#define AUTODIFF_BUILDERS_AXIS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::autodiff {

/// One axis of tiles of a shape, seen from every element.
class Axis {
public:
  Axis(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, unsigned axis)
      : b(builder), loc(loc), shape(shape), axis(axis) {}

  /// The position along the axis, as a tile of i32.
  Value position() const;

  /// Where the position is this one.
  Value isAt(int64_t where) const;
  Value isFirst() const { return isAt(0); }
  Value isLast() const { return isAt(shape[axis] - 1); }

  /// The neighbour that comes before, or after, along the axis; the element
  /// itself where there is none.
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
