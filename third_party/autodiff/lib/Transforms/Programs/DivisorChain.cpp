//===- DivisorChain.cpp - Numbers that take positions apart ---------------===//
#include "DivisorChain.h"

using namespace mlir;
using namespace mlir::autodiff;
using Kind = ScalarExpr::Kind;

namespace {
/// constant · Π factors
struct Product {
  explicit Product(const ScalarExpr &number) { multiply(number); }
  void multiply(const ScalarExpr &number);

  int64_t constant = 1;
  SmallVector<ScalarExpr> factors;
};
} // namespace

void Product::multiply(const ScalarExpr &number) {
  if (number.getKind() == Kind::Mul) {
    multiply(number.getLhs());
    multiply(number.getRhs());
  } else if (std::optional<int64_t> known = number.getConstant()) {
    constant *= *known;
  } else {
    factors.push_back(number);
  }
}

/// number / divisor, if the division is known to be exact.
static std::optional<ScalarExpr> wholeQuotient(const ScalarExpr &number,
                                               const ScalarExpr &divisor) {
  Product whole(number), by(divisor);
  if (by.constant == 0 || whole.constant % by.constant != 0)
    return std::nullopt;
  for (const ScalarExpr &factor : by.factors) {
    auto found = llvm::find(whole.factors, factor);
    if (found == whole.factors.end())
      return std::nullopt;
    whole.factors.erase(found);
  }
  ScalarExpr quotient = ScalarExpr::constant(whole.constant / by.constant);
  for (const ScalarExpr &factor : whole.factors)
    quotient = quotient * factor;
  return quotient;
}

static ScalarExpr divideBy(const ScalarExpr &number, const ScalarExpr &n) {
  std::optional<ScalarExpr> whole = wholeQuotient(number, n);
  return whole ? *whole : ScalarExpr::binary(Kind::Div, number, n);
}

static bool isSame(const ScalarExpr &a, const ScalarExpr &b) {
  std::optional<ScalarExpr> quotient = wholeQuotient(a, b);
  return quotient && quotient->getConstant() == 1;
}

bool DivisorChain::divides(const ScalarExpr &divisor,
                           const ScalarExpr &number) const {
  return wholeQuotient(number, divisor) ||
         llvm::any_of(claims, [&](const auto &claim) {
           return isSame(claim.first, divisor) && isSame(claim.second, number);
         });
}

/// Assumes that `divisor` divides `number`; false if it is known not to.
bool DivisorChain::claim(const ScalarExpr &divisor, const ScalarExpr &number) {
  if (divides(divisor, number))
    return true;
  if (divides(number, divisor) ||
      (divisor.getConstant() && number.getConstant()))
    return false;
  claims.push_back({divisor, number});
  return true;
}

std::optional<DigitRange> DivisorChain::divide(const DigitRange &range,
                                               const ScalarExpr &n) {
  ScalarExpr from = range.from * n;
  if (n.getConstant().value_or(1) <= 0 || (range.to && !claim(from, *range.to)))
    return std::nullopt;
  divisors.push_back(from);
  return DigitRange{from, range.to};
}

std::optional<DigitRange> DivisorChain::remainder(const DigitRange &range,
                                                  const ScalarExpr &n) {
  ScalarExpr to = range.from * n;
  if (n.getConstant().value_or(1) <= 0)
    return std::nullopt;
  if (range.to && divides(*range.to, to))
    return range;
  if (range.to && !claim(to, *range.to))
    return std::nullopt;
  divisors.push_back(to);
  return DigitRange{range.from, to};
}

bool DivisorChain::order() {
  SmallVector<ScalarExpr> ordered{ScalarExpr::constant(1)};
  for (const ScalarExpr &divisor : divisors) {
    auto isSmaller = [&](const ScalarExpr &other) {
      return divides(other, divisor);
    };
    auto *place = llvm::find_if_not(ordered, isSmaller);
    if (isSame(place[-1], divisor))
      continue;
    for (const ScalarExpr &larger : llvm::make_range(place, ordered.end()))
      if (isSmaller(larger) || !divides(divisor, larger))
        return false;
    ordered.insert(place, divisor);
  }
  divisors = std::move(ordered);
  return true;
}

unsigned DivisorChain::find(const ScalarExpr &divisor) const {
  return llvm::find_if(
             divisors,
             [&](const ScalarExpr &other) { return isSame(divisor, other); }) -
         divisors.begin();
}

std::pair<unsigned, unsigned>
DivisorChain::getDigits(const DigitRange &range) const {
  return {find(range.from), range.to ? find(*range.to) : getLength()};
}

ScalarExpr DivisorChain::getWeight(unsigned digit, unsigned first) const {
  return divideBy(divisors[digit], divisors[first]);
}

ScalarExpr DivisorChain::getLimit(unsigned digit, const ScalarExpr &end) const {
  return divideBy(digit + 1 < getLength() ? divisors[digit + 1] : end,
                  divisors[digit]);
}

SmallVector<ScalarExpr> DivisorChain::getAssumed(const ScalarExpr &end) const {
  ScalarExpr none = ScalarExpr::constant(0), one = ScalarExpr::constant(1);
  SmallVector<ScalarExpr> assumed;
  for (unsigned digit = 0; digit < getLength(); ++digit) {
    const ScalarExpr &next =
        digit + 1 < getLength() ? divisors[digit + 1] : end;
    assumed.push_back(next - one);
    if (!wholeQuotient(next, divisors[digit]))
      assumed.push_back(none -
                        ScalarExpr::binary(Kind::Rem, next, divisors[digit]));
  }
  llvm::erase_if(assumed,
                 [](const ScalarExpr &n) { return n.isNotNegative(); });
  return assumed;
}
