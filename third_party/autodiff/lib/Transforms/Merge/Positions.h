//===- Positions.h - Where a lane of a program stands -----------*- C++ -*-===//
//
// The address of an access is Σ strideᵢ · uᵢ + a constant, where each uᵢ counts
// through programs and the lanes of their tiles: uᵢ = programᵢ · lengthᵢ +
// laneᵢ. What is computed from these positions alone, lane by lane, can be
// computed for other positions just as well, those of neighbours included,
// whatever program they belong to.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_MERGE_POSITIONS_H
#define AUTODIFF_LIB_TRANSFORMS_MERGE_POSITIONS_H

#include "autodiff/Analysis/AccessSpace.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

/// One of the positions u = program · length + lane.
struct Position {
  ScalarExpr stride;               ///< of addresses
  std::optional<unsigned> axis;    ///< of the lanes; none: there is one
  std::optional<ScalarExpr> digit; ///< of program ids; none: there is one
  int64_t length = 1;              ///< of the lanes

  /// What a form multiplies this position by, in a tile whose axis `at` its
  /// lanes are on; none if it depends on parts of it in another way.
  std::optional<ScalarExpr> coefficientIn(const LinearForm &form,
                                          std::optional<unsigned> at) const;
  /// How many there are.
  ExprAttr count(MLIRContext *context) const;
};

class Positions {
public:
  /// The positions that addresses of this form and of tiles of `shape` are made
  /// of; none if they are not.
  static std::optional<Positions> of(const LinearForm &address,
                                     ArrayRef<int64_t> shape);

  ArrayRef<Position> get() const { return positions; }
  size_t size() const { return positions.size(); }
  const Position &operator[](size_t number) const { return positions[number]; }

  /// Whether `form` depends on program ids in no other way than by positions.
  bool explain(const LinearForm &form) const;
  /// What `form`, of a tile with the positions' axes, multiplies each position
  /// by; none if it depends on anything else.
  std::optional<SmallVector<ScalarExpr>>
  coefficientsIn(const LinearForm &form) const;

  /// Position number `number` in each lane of a tile of `shape`, whose axis
  /// `axis` its lanes are on: i32.
  Value emit(OpBuilder &b, Location loc, size_t number,
             std::optional<unsigned> axis, ArrayRef<int64_t> shape) const;

private:
  SmallVector<Position> positions;
};

/// How far away the lanes are whose values are computed, for each position.
using Distance = SmallVector<int64_t>;

/// Computes for each lane what the one at a distance from it has.
class Neighbors {
public:
  /// Which axis of a tile the lanes of each position are on.
  using Axes = SmallVector<std::optional<unsigned>>;

  /// Copies go to where `b` stands. `written` is what the kernel stores to.
  Neighbors(OpBuilder &b, const Positions &positions, Distance distance,
            ArrayRef<Value> written);

  /// `value` at that distance, of a tile with the positions' axes; null if it
  /// is not computed from positions, lane by lane. It is not defined in lanes
  /// that have no such neighbour.
  Value get(Value value);
  /// Whether what has been asked for depends on `value` at that distance: it is
  /// another one than here, or the distance is none.
  bool needs(Value value) const;
  /// Makes `moved` what `value` is at the distance.
  void bind(Value value, Value moved);
  const Distance &getDistance() const { return distance; }
  /// Whether lanes of `value`'s shape have such a neighbour; null if all have.
  Value exists(Value value);
  /// How many loads have been copied.
  unsigned countLoads() const { return loads; }

private:
  Value get(Value value, const Axes &axes);
  Value compute(Value value, const Axes &axes);
  Value copy(OpResult result, const Axes &axes);
  Value advance(Value value, const LinearForm &form, const Axes &axes);
  Value limit(Location loc, Type type, const Axes &axes);
  bool isPosition(const LinearForm &form, const Axes &axes) const;
  Axes getOwnAxes() const;

  OpBuilder &b;
  const Positions &positions;
  Distance distance;
  ArrayRef<Value> written;
  /// By value, for the axes that it was asked for with; null if there is none.
  llvm::DenseMap<Value, SmallVector<std::pair<Axes, Value>, 1>> known;
  unsigned loads = 0;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_MERGE_POSITIONS_H
