//===- Tile.h - Arithmetic on tiles, written as formulas --------*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_TILE_H
#define AUTODIFF_BUILDERS_TILE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>

namespace mlir::autodiff {

/// A float or tile of floats together with a builder, so that formulas can be
/// written with operators.
class Tile {
public:
  Tile(OpBuilder &builder, Location loc, Value value)
      : builder(&builder), location(loc), value(value) {}

  operator Value() const { return value; }
  Type type() const { return value.getType(); }
  OpBuilder &b() const { return *builder; }
  Location loc() const { return location; }

  Tile like(Value other) const { return Tile(*builder, location, other); }
  /// A constant of this tile's type.
  Tile constant(double number) const;

  /// Creates `OpT` with these operands.
  template <typename OpT, typename... Operands>
  Tile make(Operands... operands) const {
    return like(OpT::create(*builder, location, Value(operands)...));
  }

private:
  OpBuilder *builder;
  Location location;
  Value value;
};

Tile operator+(Tile a, Tile b);
Tile operator-(Tile a, Tile b);
Tile operator*(Tile a, Tile b);
Tile operator/(Tile a, Tile b);
Tile operator-(Tile a);
Tile operator+(Tile a, double b);
Tile operator-(double a, Tile b);
Tile operator*(double a, Tile b);

Tile exp(Tile x);
Tile log(Tile x);
Tile sqrt(Tile x);
Tile sin(Tile x);
Tile cos(Tile x);

/// n + addend, for an integer or tile of integers.
Tile addInteger(Tile n, int64_t addend);
/// Converts an integer or tile of integers to the float type of `like`.
Tile toFloat(Tile n, Tile like);

/// A constant of a float type or tile of floats.
Value constantOf(OpBuilder &builder, Location loc, Type type, double number);

/// A constant of an integer type or tile of integers.
Value integerOf(OpBuilder &builder, Location loc, Type type, int64_t number);

/// a < b, a == b, …, as a condition for `where`; false if either is NaN.
Value compare(arith::CmpFPredicate predicate, Tile a, Tile b);
/// condition ? a : b
Tile where(Value condition, Tile a, Tile b);

/// select(t == 0, 0, product), for a `product` of t and a partial derivative.
/// The partial derivative may have a pole at `x`: lanes with t = 0, such as
/// masked ones, would become 0 · ∞ = NaN, and may be summed later. If `x` is
/// uniform (a splat), a pole is in all lanes, and the product is returned as it
/// is.
Tile unlessZero(Tile t, Tile product, Value x);
/// Marks a selection of zero: its other operand is zero there, too, or NaN.
void markUnlessZero(Value select);
/// The t of a result of `unlessZero`; null for other values.
Value findUnlessZero(Value value);

/// A scalar or tile of zeros.
Value zeroOf(OpBuilder &builder, Location loc, Type type);

/// The sum of a tile over one axis; the result lacks the axis, and is a scalar
/// for rank 1.
Value sumOver(OpBuilder &builder, Location loc, Value tile, unsigned axis);
/// The sum over all axes: a scalar.
Value sumAll(OpBuilder &builder, Location loc, Value tile);
/// Inserts axis `axis` into `tile` and broadcasts it to the shape of `type`.
Value repeatAlong(OpBuilder &builder, Location loc, Value tile, unsigned axis,
                  RankedTensorType type);
/// The conjunction of two conditions; null is true.
Value bothHold(OpBuilder &builder, Location loc, Value a, Value b);
/// Whether one of some conditions holds; null is true, also if there are none.
Value oneHolds(OpBuilder &builder, Location loc, ArrayRef<Value> conditions);
/// The negation of a condition. Comparisons are inverted, since analyses read
/// comparisons, and canonicalization removes selections by a negation.
Value negationOf(OpBuilder &builder, Location loc, Value condition);
/// Broadcasts `value` to `shape`. It is a scalar, or a tile whose axes longer
/// than one are the `axes` of `shape`, in order.
Value repeatOver(OpBuilder &builder, Location loc, Value value,
                 ArrayRef<unsigned> axes, ArrayRef<int64_t> shape);
/// The order of the inverse transposition.
SmallVector<int32_t> invertOrder(ArrayRef<int32_t> order);
/// Removes attributes with which the user promises alignment for each axis,
/// where a clone works on tiles with other axes.
void dropHints(Operation *op);
/// A splat of `scalar` to the shape of `type`; the scalar itself if `type` is
/// no tile.
Value splatTo(OpBuilder &builder, Location loc, Value scalar, Type type);
/// `type` with another element type.
Type withElementType(Type type, Type element);
/// `value`, a float or tile of floats, with element type `element`.
Value castFloat(OpBuilder &builder, Location loc, Value value, Type element);

/// Sign-extends or truncates `value`, an integer or tile of integers, to
/// `element`.
Value castInteger(OpBuilder &builder, Location loc, Value value, Type element);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_TILE_H
