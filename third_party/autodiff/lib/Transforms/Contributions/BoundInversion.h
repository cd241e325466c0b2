//===- BoundInversion.h - Which programs a bound lets through ---*- C++ -*-===//
//
// Bounds of a loop say which iterations a program runs. Solved for a digit of
// program ids, they say which programs run an iteration. To solve, the
// operations of a bound are inverted step by step on the index that it is
// compared with, until a multiple of the digit is left.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_BOUNDINVERSION_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_BOUNDINVERSION_H

#include "autodiff/Builders/Regrid.h"

namespace mlir::autodiff {

class BoundInversion {
public:
  /// For the values 0 … extent − 1 of `digit`, whose type is that of indices.
  /// `atZero` computes values of the forward with the digit zero.
  BoundInversion(OpBuilder &builder, Location loc, const ScalarExpr &digit,
                 Value extent, Regrid &atZero);

  /// A number that bounds are compared with, and its minimum if that is known.
  struct Index {
    bool isNotNegative() const { return least && *least >= 0; }

    Value value;
    std::optional<int64_t> least;
  };

  /// Keeps the values with start ≤ index. Like the functions below, fails if
  /// the bound depends on the digit in a way that is not understood.
  LogicalResult keepStarted(Value start, Index index);
  /// Keeps the values with index < end.
  LogicalResult keepUnended(Value end, Index index);
  /// Keeps the values for which a comparison holds.
  LogicalResult keepWhere(arith::CmpIOp comparison);

  /// The values that are kept: the first one, and the one behind the last.
  std::pair<Value, Value> getRange() const { return {first, end}; }

private:
  enum class Side { Start, End };
  /// coefficient · digit + rest
  struct Affine {
    int64_t coefficient;
    Value rest;
  };

  LogicalResult keep(Value bound, Index index, Side side);
  LogicalResult keepEither(Value one, Value other, Index index);
  void keepAffine(const Affine &bound, Value index, Side side);
  std::optional<Affine> asAffine(Value bound);
  std::optional<Index> undo(Value &bound, Index index);
  Value constant(int64_t value);
  Value floorDivide(Value x, int64_t divisor);

  OpBuilder &b;
  Location loc;
  const ScalarExpr &digit;
  Regrid &atZero;
  Type type;
  Value first, end;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_BOUNDINVERSION_H
