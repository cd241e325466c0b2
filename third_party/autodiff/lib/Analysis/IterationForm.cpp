//===- IterationForm.cpp - Integers of an iteration -----------------------===//
#include "autodiff/Analysis/IterationForm.h"

#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

IterationForm IterationForm::scaled(int64_t by) const {
  IterationForm result{factor * by, low * by, high * by, scalars};
  if (by < 0)
    std::swap(result.low, result.high);
  for (auto &[scalar, coefficient] : result.scalars)
    coefficient *= by;
  return result;
}

IterationForm IterationForm::operator+(const IterationForm &other) const {
  IterationForm sum{factor + other.factor, low + other.low, high + other.high,
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

std::optional<IterationForm> IterationForm::of(Value value, scf::ForOp loop) {
  if (value == loop.getInductionVar())
    return IterationForm{1};
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)) &&
      number.getSignificantBits() <= 32)
    return IterationForm{0, number.getSExtValue(), number.getSExtValue()};
  if (value.getType().isIntOrIndex() && loop.isDefinedOutsideOfLoop(value))
    return IterationForm{0, 0, 0, {{value, 1}}};
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto range = dyn_cast<triton::MakeRangeOp>(op))
    return IterationForm{0, range.getStart(), int64_t(range.getEnd()) - 1};
  if (triton::AxisMap::ofMove(op) || isa<arith::ExtSIOp>(op))
    return of(op->getOperand(0), loop);
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<IterationForm> a = of(op->getOperand(0), loop);
  std::optional<IterationForm> b = of(op->getOperand(1), loop);
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

std::optional<IterationForm> IterationForm::marginOf(arith::CmpIOp compare,
                                                     scf::ForOp loop) {
  std::optional<IterationForm> a = IterationForm::of(compare.getLhs(), loop);
  std::optional<IterationForm> b = IterationForm::of(compare.getRhs(), loop);
  if (!a || !b)
    return std::nullopt;
  IterationForm one{0, 1, 1};
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

Value IterationForm::emitLeast(OpBuilder &b, Location loc) const {
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
