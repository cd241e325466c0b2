//===- DeadLanes.h - Lanes that are left out, in a backward -----*- C++ -*-===//
#ifndef AUTODIFF_RULES_DEADLANES_H
#define AUTODIFF_RULES_DEADLANES_H

#include "autodiff/Builders/Tile.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

class Adjoint;
struct Lanes;

/// Where lanes are live, in a backward kernel: a condition, null for all, which
/// may hold in more lanes if it is not exact.
struct LiveMask {
  Value condition;
  bool isExact = true;
};

/// Computes, for a tile or scalar of `type`, where `lanes` are.
LiveMask emitLanes(Adjoint &adjoint, const Lanes *lanes, Type type);

/// Where one of some cotangents, tiles or scalars of which any may be null, is
/// not zero.
Value findNonZero(OpBuilder &builder, Location loc, ValueRange cotangents);

/// `value`, a multiple of cotangents, made zero in lanes that are not live,
/// whatever the other factors are there.
Tile onlyLive(Tile value, ValueRange cotangents, LiveMask mask);

/// The values of a backward kernel that cotangents are multiplied by. These are
/// finite in lanes that are not live, for they are zero there.
class Factors {
public:
  explicit Factors(const Adjoint &adjoint) : adjoint(adjoint) {}

  /// Makes known that `value` is what the primal's `primal` is.
  void add(Value value, Value primal);
  void addCotangent(Value value) { isFinite[value] = true; }

  /// Whether what is made of these is finite in lanes that are not live.
  bool giveFinite(Value product) const;

private:
  const Adjoint &adjoint;
  llvm::DenseMap<Value, bool> isFinite;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_DEADLANES_H
