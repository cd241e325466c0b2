//===- IterationRange.cpp - Integers of an iteration ----------------------===//
#include "autodiff/Analysis/IterationRange.h"

#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

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

std::optional<IterationRange> IterationRange::of(Value value, scf::ForOp loop) {
  if (value == loop.getInductionVar())
    return IterationRange{1};
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)) &&
      number.getSignificantBits() <= 32)
    return IterationRange{0, number.getSExtValue(), number.getSExtValue()};
  if (value.getType().isIntOrIndex() && loop.isDefinedOutsideOfLoop(value))
    return IterationRange{0, 0, 0, {{value, 1}}};
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto range = dyn_cast<triton::MakeRangeOp>(op))
    return IterationRange{0, range.getStart(), int64_t(range.getEnd()) - 1};
  if (triton::AxisMap::ofMove(op) || isa<arith::ExtSIOp>(op))
    return of(op->getOperand(0), loop);
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<IterationRange> a = of(op->getOperand(0), loop);
  std::optional<IterationRange> b = of(op->getOperand(1), loop);
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return *a + *b;
  if (isa<arith::SubIOp>(op))
    return *a + b->scaled(-1);
  return matchPattern(op->getOperand(1), m_ConstantInt(&number))
             ? std::optional(a->scaled(b->low))
             : std::nullopt;
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
