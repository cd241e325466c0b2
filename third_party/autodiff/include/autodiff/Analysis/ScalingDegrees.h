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
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_SCALINGDEGREES_H
#define AUTODIFF_ANALYSIS_SCALINGDEGREES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <optional>

namespace mlir::autodiff {

/// How a value moves with (at most two) seeds.
struct Degree {
  using Vector = std::array<double, 2>;
  Vector shift{0, 0}, scale{0, 0};
  /// Zero scales, and −∞ shifts, by anything.
  enum class Special { None, Zero, NegativeInfinity } special = Special::None;
  /// The tile axis for each axis of the seeds; meaningless if invariant.
  llvm::SmallVector<unsigned, 2> axes;

  static Degree shifted(Vector shift, llvm::ArrayRef<unsigned> axes);
  static Degree scaled(Vector scale, llvm::ArrayRef<unsigned> axes);

  bool isInvariant() const;
  bool isShift() const;
  bool isScale() const;
};

class ScalingDegrees {
public:
  void seed(Value value, Degree degree) { known[value] = degree; }

  /// The degree of `value`; none if it is not homogeneous.
  std::optional<Degree> of(Value value);

  bool isInvariant(Value value) {
    std::optional<Degree> degree = of(value);
    return degree && degree->isInvariant();
  }

  /// Whether all that `root` writes, and all that decides whether and where it
  /// writes, is invariant.
  bool hasInvariantEffects(Operation *root);

private:
  std::optional<Degree> compute(Value value);
  std::optional<Degree> ofOperation(Operation *op, unsigned result);
  std::optional<Degree> ofLoop(Operation *loop, unsigned result);

  llvm::DenseMap<Value, std::optional<Degree>> known;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SCALINGDEGREES_H
