//===- Positions.h - Where a lane of a program stands -----------*- C++ -*-===//
//
// An address is Σ strideᵢ · uᵢ + a constant. Each position uᵢ counts through
// programs and the lanes of their tiles: uᵢ = programᵢ · lengthᵢ + laneᵢ, as
// `pid * BLOCK + tl.arange(0, BLOCK)`. A value that is computed from positions
// alone, lane by lane, can be computed for other positions, too: for those of
// neighbours, whatever program they belong to.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_MERGE_POSITIONS_H
#define AUTODIFF_LIB_TRANSFORMS_MERGE_POSITIONS_H

#include "autodiff/Analysis/AccessSpace.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

/// Indices are of 32 bits.
constexpr int64_t kMostIndex = std::numeric_limits<int32_t>::max();

/// The shape of a tile; none of a scalar.
ArrayRef<int64_t> shapeOf(Type type);

/// A position u = program · length + lane.
struct Position {
  ScalarExpr stride;               ///< of addresses
  std::optional<unsigned> axis;    ///< of the lanes; none: there is one
  std::optional<ScalarExpr> digit; ///< of program ids; none: there is one
  int64_t length = 1;              ///< of the lanes

  /// The coefficient of this position in `form`, for a tile whose axis `at` has
  /// its lanes. None if the form contains program or lane in another way.
  std::optional<ScalarExpr> coefficientIn(const LinearForm &form,
                                          std::optional<unsigned> at) const;
  /// How many values the position has.
  ExprAttr count(MLIRContext *context) const;
};

class Positions {
public:
  /// The positions in an address, of tiles of `shape`; none if it is not of
  /// this form.
  static std::optional<Positions> of(const LinearForm &address,
                                     ArrayRef<int64_t> shape);

  ArrayRef<Position> get() const { return positions; }
  size_t size() const { return positions.size(); }
  const Position &operator[](size_t number) const { return positions[number]; }

  /// Whether `form` only contains program ids as parts of positions, or such
  /// that all neighbours have.
  bool explain(const LinearForm &form) const;
  /// The coefficient of each position in `form`, for a tile with the positions'
  /// axes; none if it contains anything else.
  std::optional<SmallVector<ScalarExpr>>
  coefficientsIn(const LinearForm &form) const;

  /// Position number `number` in each lane of a tile of `shape`, whose axis
  /// `axis` has its lanes: i32.
  Value emit(OpBuilder &b, Location loc, size_t number,
             std::optional<unsigned> axis, ArrayRef<int64_t> shape) const;

  /// Whether position number `number` is below `bound`, in each lane of `like`,
  /// a tile with the positions' axes.
  Value emitBelow(OpBuilder &b, Location loc, size_t number,
                  const ScalarExpr &bound, Type like) const;

private:
  SmallVector<Position> positions;
};

/// How far away a neighbour is, for each position.
using Distance = SmallVector<int64_t>;

/// What is added to a distance in each iteration of loops, as an i32, for each
/// position; null for nothing.
using MovingDistance = SmallVector<Value>;

/// Emits, for each lane, the values of the lane at some distance from it.
class Neighbors {
public:
  /// For each position, the axis of a tile that has its lanes.
  using Axes = SmallVector<std::optional<unsigned>>;

  /// Emits at `b`. `written` are the arguments that the kernel stores to. A
  /// neighbour is of the same iteration of all loops.
  Neighbors(OpBuilder &b, const Positions &positions, Distance distance,
            ArrayRef<Value> written, MovingDistance moving = {});

  /// `value` at that distance, for a tile with the positions' axes. Null if it
  /// is not computed from positions, lane by lane. Undefined in lanes that have
  /// no such neighbour.
  Value get(Value value);
  /// Whether the values so far depend on `value` at that distance, and that is
  /// different from here.
  bool needs(Value value) const;
  /// Sets the value at that distance to `moved`.
  void bind(Value value, Value moved);
  const Distance &getDistance() const { return distance; }
  /// The condition for lanes of `value`'s shape to have such a neighbour; null
  /// if all have one.
  Value exists(Value value);
  /// How many loads have been cloned.
  unsigned countLoads() const { return loads; }

private:
  Value get(Value value, const Axes &axes);
  Value compute(Value value, const Axes &axes);
  Value copy(OpResult result, const Axes &axes);
  Value advance(Value value, const LinearForm &form, const Axes &axes);
  Value limit(Location loc, Type type, const Axes &axes);
  bool isPosition(const LinearForm &form, const Axes &axes) const;
  Axes getOwnAxes() const;
  /// Whether a neighbour is elsewhere along position number `number`.
  bool isFar(size_t number) const {
    return distance[number] != 0 || moving[number];
  }

  OpBuilder &b;
  const Positions &positions;
  Distance distance;
  MovingDistance moving;
  ArrayRef<Value> written;
  /// For each value and axes, the result; null if there is none.
  llvm::DenseMap<Value, SmallVector<std::pair<Axes, Value>, 1>> known;
  unsigned loads = 0;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_MERGE_POSITIONS_H
