//===- Constraints.cpp - Masks as bounds of sums --------------------------===//
#include "autodiff/Analysis/Constraints.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;
using From = ScalarExpr::From;

Constraint mlir::autodiff::lessThan(const LinearForm &lhs,
                                    const LinearForm &rhs, int64_t slack) {
  Constraint constraint{lhs - rhs};
  constraint.bound = ScalarExpr::constant(slack) - constraint.form.constant;
  constraint.form.constant = ScalarExpr::constant(0);
  return constraint;
}

/// lhs < rhs + slack; nothing, if that is always true.
static Constraints lessThan(Value lhs, Value rhs, int64_t slack, From from) {
  std::optional<LinearForm> a = LinearForm::of(lhs, {}, from);
  std::optional<LinearForm> b = LinearForm::of(rhs, {}, from);
  if (!a || !b)
    return std::nullopt;
  Constraint constraint = lessThan(*a, *b, slack);
  // −Σ (indices, if they are not negative) < a positive bound: always true.
  bool negative = llvm::all_of(constraint.form.terms, [](const auto &term) {
    return term.coefficient.getConstant().value_or(1) <= 0 &&
           (!term.dimension.digit || term.dimension.digit->isNotNegative());
  });
  if (negative && constraint.bound.getConstant().value_or(0) > 0)
    return SmallVector<Constraint>();
  return SmallVector<Constraint>{constraint};
}

/// x = 0, of an x that is not negative: x < 1.
static Constraints isZero(Value x, Value zero, From from) {
  if (!matchPattern(zero, m_Zero()))
    return std::nullopt;
  std::optional<LinearForm> form = LinearForm::of(x, {}, from);
  bool isDigit = form && form->constant.isNotNegative() &&
                 llvm::all_of(form->terms, [](const LinearForm::Term &term) {
                   return term.coefficient.isNotNegative() &&
                          term.dimension.digit &&
                          term.dimension.digit->isNotNegative();
                 });
  if (!isDigit)
    return std::nullopt;
  return lessThan(x, zero, 1, from);
}

static Constraints ofComparison(arith::CmpIOp op, From from) {
  using arith::CmpIPredicate;
  switch (op.getPredicate()) {
  case CmpIPredicate::slt:
    return lessThan(op.getLhs(), op.getRhs(), 0, from);
  case CmpIPredicate::sle:
    return lessThan(op.getLhs(), op.getRhs(), 1, from);
  case CmpIPredicate::sgt:
    return lessThan(op.getRhs(), op.getLhs(), 0, from);
  case CmpIPredicate::sge:
    return lessThan(op.getRhs(), op.getLhs(), 1, from);
  case CmpIPredicate::eq:
    return isZero(op.getLhs(), op.getRhs(), from);
  default:
    return std::nullopt;
  }
}

/// Collects the constraints that the conjunction `mask` consists of; false if
/// it consists of others, too.
static bool collectConstraints(Value mask, SmallVectorImpl<Constraint> &found,
                               From from) {
  if (!mask || matchPattern(mask, m_One()))
    return true;
  Operation *op = mask.getDefiningOp();
  if (!op)
    return false;
  if (auto comparison = dyn_cast<arith::CmpIOp>(op)) {
    Constraints constraints = ofComparison(comparison, from);
    if (constraints)
      found.append(*constraints);
    return constraints.has_value();
  }
  if (isa<arith::AndIOp>(op)) {
    bool lhs = collectConstraints(op->getOperand(0), found, from);
    bool rhs = collectConstraints(op->getOperand(1), found, from);
    return lhs && rhs;
  }
  if (!isa<triton::SplatOp, triton::BroadcastOp, triton::ExpandDimsOp>(op))
    return false;
  size_t known = found.size();
  bool isAll = collectConstraints(op->getOperand(0), found, from);
  if (auto expand = dyn_cast<triton::ExpandDimsOp>(op))
    for (Constraint &constraint : MutableArrayRef(found).drop_front(known))
      constraint.form.renumberAxes(
          [&](unsigned axis) { return axis + (axis >= expand.getAxis()); });
  return isAll;
}

Constraints mlir::autodiff::constraintsOf(Value mask, From from) {
  SmallVector<Constraint> constraints;
  if (!collectConstraints(mask, constraints, from))
    return std::nullopt;
  return constraints;
}

SmallVector<Constraint> mlir::autodiff::knownConstraintsOf(Value mask,
                                                           From from) {
  SmallVector<Constraint> constraints;
  collectConstraints(mask, constraints, from);
  return constraints;
}
