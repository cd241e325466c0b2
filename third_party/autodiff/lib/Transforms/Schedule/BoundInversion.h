//===- BoundInversion.h - Which programs a bound lets through ---*- C++ -*-===//
//
// Bounds of a loop say which iterations a program runs. Solved for a digit of
// program ids, they say which programs run an iteration: what a bound is made
// of is undone on the index that it is compared with, step by step, down to a
// multiple of the digit.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_BOUNDINVERSION_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_BOUNDINVERSION_H

#include "autodiff/Builders/Regrid.h"

namespace mlir::autodiff {

class BoundInversion {
public:
  /// Of the values 0 … extent − 1 of `digit`, whose type is the indices'.
  /// `atZero` computes values of the primal with the digit zero.
  BoundInversion(OpBuilder &builder, Location loc, const ScalarExpr &digit,
                 Value extent, Regrid &atZero);

  /// A number that bounds are compared with, and the least that it may be, if
  /// that is known.
  struct Index {
    bool isNotNegative() const { return least && *least >= 0; }

    Value value;
    std::optional<int64_t> least;
  };

  /// Keeps values with which start ≤ index. Fails, as the others do, if the
  /// bound depends on the digit in a way that is not understood.
  LogicalResult keepStarted(Value start, Index index);
  /// Keeps values with which index < end.
  LogicalResult keepUnended(Value end, Index index);
  /// Keeps values with which a comparison holds.
  LogicalResult keepWhere(arith::CmpIOp comparison);

  /// What is kept: a range, the first value and the one behind the last.
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
