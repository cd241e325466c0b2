//===- Tile.h - Arithmetic on tiles, written as formulas --------*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_TILE_H
#define AUTODIFF_BUILDERS_TILE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>

namespace mlir::autodiff {

/// A float or tile of floats together with the builder that computes with it.
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

  /// The result of `OpT` on these operands.
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

/// n + addend of an integer or tile of integers.
Tile addInteger(Tile n, int64_t addend);
/// An integer or tile of integers in the float type of `like`.
Tile toFloat(Tile n, Tile like);

/// A constant of a float type or tile of floats.
Value constantOf(OpBuilder &builder, Location loc, Type type, double number);

/// A constant of an integer type or tile of integers.
Value integerOf(OpBuilder &builder, Location loc, Type type, int64_t number);

/// a < b, a == b, …, as a condition for `where`; false if either is NaN.
Value compare(arith::CmpFPredicate predicate, Tile a, Tile b);
/// condition ? a : b
Tile where(Value condition, Tile a, Tile b);

/// `product`, a partial derivative with a pole times t, where t is not zero;
/// zero there. Masked lanes, whose t is zero, must not turn into NaN where `x`
/// has a pole in them: a sum over lanes may follow. A uniform `x` (a splat) has
/// no lanes of its own and is left alone.
Tile unlessZero(Tile t, Tile product, Value x);
/// Notes that the other side of a select is zero where it selects zero, or not
/// a number.
void markUnlessZero(Value select);
/// t, of what `unlessZero` gives for it; else null.
Value findUnlessZero(Value value);

/// A scalar or tile of zeros.
Value zeroOf(OpBuilder &builder, Location loc, Type type);

/// The sum of a tile over one axis, which vanishes; a rank-1 tile gives a
/// scalar.
Value sumOver(OpBuilder &builder, Location loc, Value tile, unsigned axis);
/// The sum over all axes: a scalar.
Value sumAll(OpBuilder &builder, Location loc, Value tile);
/// `tile` without axis `axis` repeated along it to the shape of `type`.
Value repeatAlong(OpBuilder &builder, Location loc, Value tile, unsigned axis,
                  RankedTensorType type);
/// Where two conditions hold; one that is null holds everywhere.
Value bothHold(OpBuilder &builder, Location loc, Value a, Value b);
/// Where a condition does not hold, as comparisons: analyses read these, and a
/// canonical selection is not by a negation.
Value negationOf(OpBuilder &builder, Location loc, Value condition);
/// `value`, a scalar or a tile whose axes longer than one are `axes` of
/// `shape`, one after the other, repeated along the other ones.
Value repeatOver(OpBuilder &builder, Location loc, Value value,
                 ArrayRef<unsigned> axes, ArrayRef<int64_t> shape);
/// The order of a transposition that undoes the one of this order.
SmallVector<int32_t> invertOrder(ArrayRef<int32_t> order);
/// Takes away what Triton is told of alignment, for each axis, where a copy of
/// an operation is on tiles with other axes.
void dropHints(Operation *op);
/// `scalar` in every lane of a tile shaped like `type`; itself if that is none.
Value splatTo(OpBuilder &builder, Location loc, Value scalar, Type type);
/// A tile that repeats `source` along `axis`: a splat of a scalar (along its
/// only axis), or the broadcast of a tile that had the axis inserted.
struct Repeated {
  Value source;
  unsigned axis;
};
std::optional<Repeated> matchRepeated(Value tile);
/// `type` with another element type.
Type withElementType(Type type, Type element);
/// `value`, a float or tile of floats, with element type `element`.
Value castFloat(OpBuilder &builder, Location loc, Value value, Type element);

/// Whether `op` does nothing but give all elements of its operand other places,
/// or another width.
bool rearranges(Operation *op);
/// Whether `op` takes elements elsewhere, or writes them otherwise.
bool movesElements(Operation *op);

/// `value`, an integer or tile of integers, with element type `element`:
/// signed.
Value castInteger(OpBuilder &builder, Location loc, Value value, Type element);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_TILE_H
