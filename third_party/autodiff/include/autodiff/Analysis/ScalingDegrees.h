//===- ScalingDegrees.h - What a shift of some values does ------*- C++ -*-===//
//
// Proves that outputs do not change if some values, the *seeds* m_k (a maximum,
// say), are shifted to m_k + t_k. A value v of homogeneous degree then becomes
// v · e^(Σ scale_k t_k) + Σ shift_k t_k, with only a scale or only a shift. For
// example, m has shift 1 and e^(x−m) has scale −1. Products add scales,
// quotients subtract them, exp turns a shift into a scale and log turns it
// back; sums and selects need equal degrees. A value whose degrees are all zero
// does not depend on the shift at all.
//
// The t_k may differ from element to element of the seeds: `axes` says along
// which axes of a tile they run.
//
// Facts about a seed decide comparisons: a finite one is more than −∞. If a
// fact is known of some elements of a seed only, it holds for what is computed
// from these: such a degree is *local*.
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

/// How a value changes with (at most two) seeds.
struct Degree {
  using Vector = std::array<double, 2>;
  Vector shift{0, 0}, scale{0, 0};
  /// Zero has every scale, and −∞ every shift. A value that is at least one is
  /// such for infinitely small shifts only.
  enum class Special {
    None,
    Zero,
    NegativeInfinity,
    Finite,
    AtLeastOne
  } special = Special::None;
  /// Whether this holds only for some elements: those at one index along the
  /// axes.
  bool isLocal = false;
  /// For each axis of the seeds, the axis of this tile; meaningless if the
  /// value is invariant.
  llvm::SmallVector<unsigned, 2> axes;

  static Degree shifted(Vector shift, llvm::ArrayRef<unsigned> axes);
  static Degree scaled(Vector scale, llvm::ArrayRef<unsigned> axes);

  /// The same degree with a fact added.
  Degree with(Special kind) const;
  /// The degree of elements at one index along these axes.
  Degree at(llvm::ArrayRef<unsigned> axes) const;

  bool is(Special kind) const { return special == kind; }
  bool isInvariant() const { return !isLocal && isShift() && isScale(); }
  bool isShift() const;
  bool isScale() const;
};

/// Whether two shifts, or scales, are the same up to rounding.
bool equal(const Degree::Vector &a, const Degree::Vector &b);

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

  /// The value of a condition; none if it is not known.
  std::optional<bool> decide(Value condition);

  /// Whether everything that `root` writes, and whether and where it writes, is
  /// invariant; with `orLocal`, as far as local degrees tell.
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
