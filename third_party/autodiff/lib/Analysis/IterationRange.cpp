//===- IterationRange.cpp - Integers of an iteration ----------------------===//
#include "autodiff/Analysis/IterationRange.h"

#include "autodiff/Analysis/IndexVisitor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

IterationRange IterationRange::scaled(int64_t by) const {
  IterationRange result{factor * by, low * by, high * by, scalars};
  if (by < 0)
    std::swap(result.low, result.high);
  for (auto &[scalar, coefficient] : result.scalars)
    coefficient *= by;
  return result;
}

IterationRange IterationRange::operator+(const IterationRange &other) const {
  IterationRange sum{factor + other.factor, low + other.low, high + other.high,
                     scalars};
  for (auto &[scalar, coefficient] : other.scalars) {
    auto *known = llvm::find_if(sum.scalars, [&, value = scalar](auto &term) {
      return term.first == value;
    });
    if (known == sum.scalars.end())
      sum.scalars.push_back({scalar, coefficient});
    else
      known->second += coefficient;
  }
  return sum;
}

namespace {
using MaybeRange = std::optional<IterationRange>;

struct RangeFinder : IndexVisitor<RangeFinder, MaybeRange> {
  explicit RangeFinder(scf::ForOp loop) : loop(loop) {}

  MaybeRange of(Value value);
  MaybeRange ofSum(Value a, Value b) { return combine(a, b, 1); }
  MaybeRange ofDifference(Value a, Value b) { return combine(a, b, -1); }
  MaybeRange combine(Value a, Value b, int64_t sign);
  MaybeRange ofProduct(Value a, Value b);
  // Scalars are widened as integers, which indices are not.
  MaybeRange ofSame(Value value) {
    return value.getType().isIndex() && value != loop.getInductionVar()
               ? std::nullopt
               : of(value);
  }
  MaybeRange ofMoved(Value value, const triton::AxisMap &) { return of(value); }
  MaybeRange ofRange(triton::MakeRangeOp range) {
    return IterationRange{0, range.getStart(), int64_t(range.getEnd()) - 1, {}};
  }
  MaybeRange ofOther(Operation *) { return std::nullopt; }

  scf::ForOp loop;
};
} // namespace

MaybeRange RangeFinder::combine(Value a, Value b, int64_t sign) {
  MaybeRange lhs = of(a), rhs = of(b);
  return lhs && rhs ? MaybeRange(*lhs + rhs->scaled(sign)) : std::nullopt;
}

MaybeRange RangeFinder::ofProduct(Value a, Value b) {
  MaybeRange lhs = of(a), rhs = of(b);
  APInt number;
  return lhs && rhs && matchPattern(b, m_ConstantInt(&number))
             ? MaybeRange(lhs->scaled(rhs->low))
             : std::nullopt;
}

MaybeRange RangeFinder::of(Value value) {
  if (value == loop.getInductionVar())
    return IterationRange{1};
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)) &&
      number.getSignificantBits() <= 32)
    return IterationRange{0, number.getSExtValue(), number.getSExtValue(), {}};
  if (value.getType().isIntOrIndex() && loop.isDefinedOutsideOfLoop(value))
    return IterationRange{0, 0, 0, {{value, 1}}};
  Operation *op = value.getDefiningOp();
  return op ? visit(op) : MaybeRange();
}

MaybeRange IterationRange::of(Value value, scf::ForOp loop) {
  return RangeFinder(loop).of(value);
}

std::optional<IterationRange> IterationRange::marginOf(arith::CmpIOp compare,
                                                       scf::ForOp loop) {
  std::optional<IterationRange> a = IterationRange::of(compare.getLhs(), loop);
  std::optional<IterationRange> b = IterationRange::of(compare.getRhs(), loop);
  if (!a || !b)
    return std::nullopt;
  IterationRange one{0, 1, 1};
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return *b + (*a + one).scaled(-1);
  case arith::CmpIPredicate::sle:
    return *b + a->scaled(-1);
  case arith::CmpIPredicate::sgt:
    return *a + (*b + one).scaled(-1);
  case arith::CmpIPredicate::sge:
    return *a + b->scaled(-1);
  default:
    return std::nullopt;
  }
}

Value mlir::autodiff::widenInteger(OpBuilder &b, Location loc, Value value) {
  if (value.getType().isInteger(64))
    return value;
  return arith::ExtSIOp::create(b, loc, b.getI64Type(), value);
}

Value IterationRange::emitLeast(OpBuilder &b, Location loc) const {
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantIntOp::create(b, loc, number, 64);
  };
  Value sum = constant(low);
  for (auto [scalar, coefficient] : scalars)
    sum = arith::AddIOp::create(
        b, loc, sum,
        arith::MulIOp::create(b, loc, widenInteger(b, loc, scalar),
                              constant(coefficient)));
  return sum;
}
