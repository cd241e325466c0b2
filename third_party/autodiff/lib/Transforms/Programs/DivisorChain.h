//===- DivisorChain.h - Numbers that take positions apart -------*- C++ -*-===//
//
// Where each of the divisors 1 = d₀, d₁, … divides the next one, a number p ≥ 0
// is Σ xⱼ · dⱼ, with the digits xⱼ = (p / dⱼ) % (dⱼ₊₁ / dⱼ), of which the last
// has no limit. Quotients by divisors, remainders, and those of the results
// are the same sums over fewer digits.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_DIVISORCHAIN_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_DIVISORCHAIN_H

#include "autodiff/Analysis/ScalarExpr.h"

namespace mlir::autodiff {

/// What is left of a number: (p / from) % (to / from), or p / from.
struct DigitRange {
  ScalarExpr from = ScalarExpr::constant(1);
  std::optional<ScalarExpr> to;
};

class DivisorChain {
public:
  /// What a range divided by `n` is, or what remains; none if it is not a
  /// range.
  std::optional<DigitRange> divide(const DigitRange &range,
                                   const ScalarExpr &n);
  std::optional<DigitRange> remainder(const DigitRange &range,
                                      const ScalarExpr &n);

  /// Orders the divisors of all ranges; false if they are not such a chain.
  bool order();

  /// How many digits there are.
  unsigned getLength() const { return divisors.size(); }
  /// The first digit of a range, and the one behind its last.
  std::pair<unsigned, unsigned> getDigits(const DigitRange &range) const;
  /// What a digit counts for in a range that begins with another one.
  ScalarExpr getWeight(unsigned digit, unsigned first = 0) const;
  /// The limit of a digit of a number below `end`, a multiple of all divisors.
  ScalarExpr getLimit(unsigned digit, const ScalarExpr &end) const;
  /// Numbers that must not be negative if all that is so below `end`.
  SmallVector<ScalarExpr> getAssumed(const ScalarExpr &end) const;

private:
  bool divides(const ScalarExpr &divisor, const ScalarExpr &number) const;
  bool claim(const ScalarExpr &divisor, const ScalarExpr &number);
  unsigned find(const ScalarExpr &divisor) const;

  SmallVector<ScalarExpr> divisors;
  /// Pairs of which the first has to divide the second.
  SmallVector<std::pair<ScalarExpr, ScalarExpr>> claims;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_DIVISORCHAIN_H
