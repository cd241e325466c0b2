//===- DeadLanes.h - Lanes that are left out, in a backward -----*- C++ -*-===//
#ifndef AUTODIFF_RULES_DEADLANES_H
#define AUTODIFF_RULES_DEADLANES_H

#include "autodiff/Builders/Tile.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

class Adjoint;
struct Lanes;

/// Which lanes are live (LiveLanes.h), in a backward kernel: a condition, null
/// for all. If it is not exact, it may hold in further lanes.
struct LiveMask {
  Value condition;
  bool isExact = true;
};

/// Emits the condition that `lanes` stand for, for a tile or scalar of `type`.
LiveMask emitLanes(Adjoint &adjoint, const Lanes *lanes, Type type);

/// Where the cotangent of each result of an operation can be other than zero:
/// a condition, null for everywhere. Empty if that is known to be the same for
/// all results.
SmallVector<Value> emitLanesOfResults(Adjoint &adjoint, Operation *op);

/// Where one of several cotangents is not zero. Any of them may be null.
Value findNonZero(OpBuilder &builder, Location loc, ValueRange cotangents);

/// Sets `value`, a product with cotangents, to zero in lanes that are not live,
/// whatever the other factors are there.
Tile onlyLive(Tile value, ValueRange cotangents, LiveMask mask);

/// Values of a backward kernel that are products of cotangents. Cotangents are
/// zero in lanes that are not live, so a product of finite values is, too.
class Factors {
public:
  explicit Factors(const Adjoint &adjoint) : adjoint(adjoint) {}

  /// Notes that `value` is the copy of the forward's value `primal`.
  void add(Value value, Value primal);
  void addCotangent(Value value) { isFinite[value] = true; }

  /// Whether a product of these is finite in lanes that are not live.
  bool giveFinite(Value product) const;

private:
  const Adjoint &adjoint;
  llvm::DenseMap<Value, bool> isFinite;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_DEADLANES_H
