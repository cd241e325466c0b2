//===- DivisorChain.h - Numbers that take positions apart -------*- C++ -*-===//
//
// Let each of the divisors 1 = d₀, d₁, … divide the next one. Then a number p ≥
// 0 is Σ xⱼ · dⱼ, with digits xⱼ = (p / dⱼ) % (dⱼ₊₁ / dⱼ), of which the last
// has no limit. Quotients by divisors, remainders, and quotients and remainders
// of these are sums of fewer digits. For example, (p / HW) % C is one digit of
// p.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_DIVISORCHAIN_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_DIVISORCHAIN_H

#include "autodiff/Analysis/ScalarExpr.h"

namespace mlir::autodiff {

/// Some consecutive digits of a number: (p / from) % (to / from), or p / from.
struct DigitRange {
  ScalarExpr from = ScalarExpr::constant(1);
  std::optional<ScalarExpr> to;
};

class DivisorChain {
public:
  /// The quotient of a range by `n`, or the remainder; none if that is no
  /// range.
  std::optional<DigitRange> divide(const DigitRange &range,
                                   const ScalarExpr &n);
  std::optional<DigitRange> remainder(const DigitRange &range,
                                      const ScalarExpr &n);

  /// Sorts the divisors of all ranges; false if they are not such a chain.
  bool order();

  /// The number of digits.
  unsigned getLength() const { return divisors.size(); }
  /// The first digit of a range, and the one behind its last.
  std::pair<unsigned, unsigned> getDigits(const DigitRange &range) const;
  /// The factor of a digit in a range that begins with digit `first`.
  ScalarExpr getWeight(unsigned digit, unsigned first = 0) const;
  /// The limit of a digit of a number below `end`, which is a multiple of all
  /// divisors.
  ScalarExpr getLimit(unsigned digit, const ScalarExpr &end) const;
  /// Numbers that must not be negative for that to be right.
  SmallVector<ScalarExpr> getAssumed(const ScalarExpr &end) const;

private:
  bool divides(const ScalarExpr &divisor, const ScalarExpr &number) const;
  bool claim(const ScalarExpr &divisor, const ScalarExpr &number);
  unsigned find(const ScalarExpr &divisor) const;

  SmallVector<ScalarExpr> divisors;
  /// Pairs of numbers of which the first is assumed to divide the second.
  SmallVector<std::pair<ScalarExpr, ScalarExpr>> claims;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_DIVISORCHAIN_H
