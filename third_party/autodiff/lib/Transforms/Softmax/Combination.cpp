//===- Combination.cpp - Sums of multiples of values and logs -------------===//
#include "Combination.h"

#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;

Value mlir::autodiff::withoutResidual(Value value) {
  auto residual = value.getDefiningOp<ResidualOp>();
  return residual ? residual.getValue() : value;
}

bool mlir::autodiff::areClose(double a, double b, Type type) {
  double epsilon = getElementTypeOrSelf(type).isF64() ? 1e-15 : 1e-7;
  return std::abs(a - b) <= 4 * epsilon * std::abs(b);
}

Value mlir::autodiff::createLog(OpBuilder &b, Value sum, double unit) {
  Tile l(b, sum.getLoc(), sum);
  if (std::abs(unit - M_LOG2E) < 1e-9)
    return l.make<math::Log2Op>(l);
  return std::abs(unit - 1) < 1e-9 ? log(l) : unit * log(l);
}

std::pair<Value, double> mlir::autodiff::matchMultiple(Value value) {
  Operation *op = value.getDefiningOp();
  APFloat number(0.0);
  auto isNumber = [&](unsigned side) {
    return matchPattern(op->getOperand(side), m_ConstantFloat(&number));
  };
  bool isProduct = isa_and_nonnull<arith::MulFOp>(op);
  bool isSwapped = isProduct && isNumber(0);
  if (!isSwapped &&
      !((isProduct || isa_and_nonnull<arith::DivFOp>(op)) && isNumber(1)))
    return {value, 1};
  bool lossy;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
  double factor = number.convertToDouble();
  return {op->getOperand(isSwapped), isProduct ? factor : 1 / factor};
}

void Combination::addTerm(Term term) {
  auto same = llvm::find_if(terms, [&](const Term &other) {
    return other.of == term.of && other.isLogarithm == term.isLogarithm;
  });
  if (same == terms.end()) {
    terms.push_back(term);
    return;
  }
  same->factor += term.factor;
  if (areClose(same->factor + term.factor, term.factor, term.of.getType()))
    terms.erase(same);
}

void Combination::add(Value value, double factor) {
  value = withoutResidual(value);
  Operation *op = budget > 0 ? value.getDefiningOp() : nullptr;
  budget -= budget > 0;
  if (isa_and_nonnull<arith::AddFOp, arith::SubFOp>(op)) {
    add(op->getOperand(0), factor);
    add(op->getOperand(1), isa<arith::AddFOp>(op) ? factor : -factor);
  } else if (isa_and_nonnull<arith::NegFOp>(op)) {
    add(op->getOperand(0), -factor);
  } else if (isa_and_nonnull<math::LogOp, math::Log2Op>(op) &&
             matchPattern(op->getOperand(0), m_OneFloat())) {
    return;
  } else if (isa_and_nonnull<math::LogOp>(op)) {
    addTerm({withoutResidual(op->getOperand(0)), true, factor});
  } else if (isa_and_nonnull<math::Log2Op>(op)) {
    addTerm({withoutResidual(op->getOperand(0)), true, factor * M_LOG2E});
  } else if (auto [source, multiple] = matchMultiple(value);
             op && source != value) {
    add(source, factor * multiple);
  } else if (!matchPattern(value, m_AnyZeroFloat())) {
    addTerm({value, false, factor});
  }
}

Combination Combination::of(Value value) {
  Combination combination;
  combination.add(value, 1);
  return combination;
}

double Combination::find(Value value, bool isLogarithm) const {
  for (const Term &term : terms)
    if (term.of == value && term.isLogarithm == isLogarithm)
      return term.factor;
  return 0;
}

Value Combination::getSum(Value center, double unit) const {
  if (size() != 2 || factorOf(withoutResidual(center)) != 1)
    return {};
  for (const Term &term : terms)
    if (term.isLogarithm && areClose(term.factor, unit, term.of.getType()))
      return term.of;
  return {};
}
