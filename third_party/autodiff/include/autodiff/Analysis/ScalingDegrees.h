//===- ScalingDegrees.h - What a shift of some values does ------*- C++ -*-===//
//
// If seeds m_k move to m_k + t_k, a value v of homogeneous degree moves to
// v · e^(Σ scale_k t_k) + Σ shift_k t_k, with at most one of the two present:
// products add scales, quotients subtract them, exp turns a shift into a scale
// and log back, sums and selects need equal degrees. A value whose degrees are
// all zero does not depend on the seeds' common offset at all.
//
// The t_k may differ from element to element of the seeds: `axes` says along
// which axes of a tile they run.
//
// What is known of a seed beyond that decides comparisons: one that is finite
// is more than −∞. If it is known of some elements of a seed only, it holds for
// what is computed from these: such a degree is local.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_SCALINGDEGREES_H
#define AUTODIFF_ANALYSIS_SCALINGDEGREES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <optional>

namespace mlir::autodiff {

/// How a value moves with (at most two) seeds.
struct Degree {
  using Vector = std::array<double, 2>;
  Vector shift{0, 0}, scale{0, 0};
  /// Zero scales, and −∞ shifts, by anything. What is at least one may only be
  /// asked of shifts that are infinitely small.
  enum class Special {
    None,
    Zero,
    NegativeInfinity,
    Finite,
    AtLeastOne
  } special = Special::None;
  /// Whether it is the degree of some elements, those at one place of the axes.
  bool isLocal = false;
  /// The tile axis for each axis of the seeds; meaningless if invariant.
  llvm::SmallVector<unsigned, 2> axes;

  static Degree shifted(Vector shift, llvm::ArrayRef<unsigned> axes);
  static Degree scaled(Vector scale, llvm::ArrayRef<unsigned> axes);

  /// The same degree with more known of it.
  Degree with(Special kind) const;
  /// The degree of elements at one place of these axes.
  Degree at(llvm::ArrayRef<unsigned> axes) const;

  bool is(Special kind) const { return special == kind; }
  bool isInvariant() const { return !isLocal && isShift() && isScale(); }
  bool isShift() const;
  bool isScale() const;
};

class ScalingDegrees {
public:
  void seed(Value value, Degree degree) {
    known[value] = degree;
    seeds.push_back(value);
  }

  /// The degree of `value`; none if it is not homogeneous.
  std::optional<Degree> of(Value value);

  bool isInvariant(Value value) {
    std::optional<Degree> degree = of(value);
    return degree && degree->isInvariant();
  }

  /// What a condition is; none if that is not known.
  std::optional<bool> decide(Value condition);

  /// Whether all that `root` writes, and all that decides whether and where it
  /// writes, is invariant, or does not move as far as its degree is known.
  bool hasInvariantEffects(Operation *root, bool orLocal = false);

private:
  std::optional<Degree> compute(Value value);
  std::optional<Degree> ofOperation(Operation *op, unsigned result);
  std::optional<Degree> ofSelect(arith::SelectOp op);
  std::optional<Degree> ofLoop(Operation *loop, unsigned result);
  bool hasSeed(Operation *op);
  void learn(Value value, std::optional<Degree> degree);

  llvm::DenseMap<Value, std::optional<Degree>> known;
  llvm::SmallVector<Value> seeds;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SCALINGDEGREES_H
