//===- ScalarSum.cpp - Expressions as sums of multiples -------------------===//
#include "ScalarSum.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::autodiff;

bool ScalarSum::addMultiple(const ScalarExpr &e, int64_t factor) {
  for (auto &[term, multiple] : terms)
    if (term == e) {
      hasMerged = true;
      return !llvm::AddOverflow(multiple, factor, multiple);
    }
  terms.push_back({e, factor});
  return true;
}

bool ScalarSum::add(const ScalarExpr &e, int64_t factor) {
  using Kind = ScalarExpr::Kind;
  int64_t product;
  std::optional<int64_t> number = e.getConstant();
  if (e.getKind() == Kind::Mul)
    number = e.getRhs().getConstant();
  if (number && llvm::MulOverflow(*number, factor, product))
    return false;
  if (e.getConstant())
    return *number == 0 || addMultiple(ScalarExpr::constant(1), product);
  if (number)
    return add(e.getLhs(), product);
  if (e.getKind() == Kind::Add)
    return add(e.getLhs(), factor) && add(e.getRhs(), factor);
  if (e.getKind() == Kind::Sub)
    return factor != std::numeric_limits<int64_t>::min() &&
           add(e.getLhs(), factor) && add(e.getRhs(), -factor);
  return addMultiple(e, factor);
}

ScalarExpr ScalarSum::get() const {
  using Kind = ScalarExpr::Kind;
  auto left = llvm::to_vector(llvm::make_filter_range(
      terms, [](const auto &term) { return term.second != 0; }));
  llvm::stable_sort(left, [](const auto &a, const auto &b) {
    auto rank = [](const std::pair<ScalarExpr, int64_t> &term) {
      return term.first.getConstant() ? 2 : term.second < 0;
    };
    return rank(a) < rank(b);
  });
  ScalarExpr sum = ScalarExpr::constant(0);
  for (auto &[term, multiple] : left) {
    ScalarExpr summand =
        ScalarExpr::binary(Kind::Mul, term, ScalarExpr::constant(multiple));
    sum = &term == &left.front().first
              ? summand
              : ScalarExpr::binary(Kind::Add, sum, summand);
  }
  return sum;
}

std::optional<ScalarExpr> ScalarSum::combine(ScalarExpr::Kind kind,
                                             const ScalarExpr &lhs,
                                             const ScalarExpr &rhs) {
  ScalarSum sum;
  if (!sum.add(lhs, 1) ||
      !sum.add(rhs, kind == ScalarExpr::Kind::Add ? 1 : -1) || !sum.hasMerged)
    return std::nullopt;
  return sum.get();
}

std::optional<ScalarExpr> ScalarSum::divide(ScalarExpr::Kind kind,
                                            const ScalarExpr &lhs,
                                            int64_t divisor) {
  ScalarSum sum;
  if (divisor <= 0 || !sum.add(lhs, 1))
    return std::nullopt;
  ScalarExpr quotient = ScalarExpr::constant(0);
  int64_t rest = 0;
  bool isNotNegative = true;
  for (const auto &[term, multiple] : sum.getTerms()) {
    isNotNegative &= multiple >= 0 && term.isNotNegative();
    if (term.getConstant())
      rest = multiple;
    else if (multiple % divisor != 0)
      return std::nullopt;
    else
      quotient = quotient + term * ScalarExpr::constant(multiple / divisor);
  }
  // A quotient that is rounded up is exact whatever the sign.
  if (rest % divisor != 0 && !isNotNegative &&
      kind != ScalarExpr::Kind::CeilDiv)
    return std::nullopt;
  if (kind == ScalarExpr::Kind::Rem)
    return ScalarExpr::constant(rest % divisor);
  int64_t last = kind == ScalarExpr::Kind::CeilDiv
                     ? llvm::divideCeilSigned(rest, divisor)
                     : rest / divisor;
  return quotient + ScalarExpr::constant(last);
}
