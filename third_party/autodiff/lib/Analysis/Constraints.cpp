//===- Constraints.cpp - Masks as bounds of sums --------------------------===//
#include "autodiff/Analysis/Constraints.h"

#include "autodiff/Analysis/IndexVisitor.h"
#include "mlir/IR/Matchers.h"

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

bool mlir::autodiff::holdsAlways(const Constraint &constraint) {
  return constraint.bound.getConstant().value_or(0) > 0 &&
         llvm::all_of(constraint.form.terms, [](const auto &term) {
           return term.coefficient.getConstant().value_or(1) <= 0 &&
                  term.dimension.isNotNegative();
         });
}

/// Whether a form depends on programs by the smaller, or larger, of two
/// numbers.
static bool hasExtremum(const LinearForm &form, ScalarExpr::Kind kind) {
  return llvm::any_of(form.terms, [&](const LinearForm::Term &term) {
    return term.dimension.digit && term.dimension.digit->getKind() == kind;
  });
}

/// Whether `op` selects the smaller, or larger, of two numbers.
static bool choosesExtremum(Operation *op, ScalarExpr::Kind kind, From from) {
  auto select = dyn_cast<arith::SelectOp>(op);
  if (!select)
    return false;
  auto chosen = ScalarExpr::of(select, from);
  auto a = ScalarExpr::of(select.getTrueValue(), from);
  auto b = ScalarExpr::of(select.getFalseValue(), from);
  return chosen && a && b &&
         (*chosen == ScalarExpr::binary(kind, *a, *b) ||
          *chosen == ScalarExpr::binary(kind, *b, *a));
}

using Forms = ReasonOr<SmallVector<LinearForm>>;

namespace {
/// The forms of which a number is the smallest (`OpT` a minimum) or largest.
template <typename OpT, ScalarExpr::Kind kind>
struct ExtremumSplitter : IndexVisitor<ExtremumSplitter<OpT, kind>, Forms> {
  explicit ExtremumSplitter(From from) : from(from) {}

  Forms of(Value value) {
    ReasonOr<LinearForm> form = LinearForm::of(value, {}, from);
    if (!form)
      return form.why();
    Operation *op = value.getDefiningOp();
    if (!op || !hasExtremum(*form, kind))
      return alone(*form);
    if (isa<OpT>(op) || choosesExtremum(op, kind, from))
      return ofEither(op->getOperands().take_back(2));
    whole = *form;
    return this->visit(op);
  }

  Forms ofEither(ValueRange numbers) {
    SmallVector<LinearForm> all;
    for (Value number : numbers) {
      Forms forms = inner(number);
      if (!forms)
        return forms.why();
      all.append(*forms);
    }
    return all;
  }
  Forms ofSum(Value a, Value b) {
    Forms lhs = inner(a), rhs = inner(b);
    if (!lhs || !rhs)
      return std::nullopt;
    SmallVector<LinearForm> sums;
    for (const LinearForm &x : *lhs)
      for (const LinearForm &y : *rhs)
        sums.push_back(x + y);
    return sums;
  }
  Forms ofDifference(Value a, Value b) {
    Forms lhs = inner(a);
    std::optional<LinearForm> rhs = LinearForm::of(b, {}, from);
    if (!lhs || !rhs)
      return std::nullopt;
    for (LinearForm &each : *lhs)
      each = each - *rhs;
    return lhs;
  }
  Forms ofSame(Value value) { return inner(value); }
  Forms ofMoved(Value value, const triton::AxisMap &map) {
    Forms forms = inner(value);
    if (forms)
      for (LinearForm &each : *forms)
        each.moveAxes(map);
    return forms;
  }
  Forms ofProduct(Value, Value) { return alone(whole); }
  Forms ofRange(triton::MakeRangeOp) { return alone(whole); }
  Forms ofOther(Operation *) { return alone(whole); }

private:
  Forms inner(Value value) { return ExtremumSplitter(from).of(value); }
  static Forms alone(const LinearForm &form) {
    return SmallVector<LinearForm>{form};
  }

  From from;
  LinearForm whole; ///< of what is visited
};
} // namespace

Forms mlir::autodiff::smallestOf(Value value, From from) {
  return ExtremumSplitter<arith::MinSIOp, ScalarExpr::Kind::Min>(from).of(
      value);
}

Constraints mlir::autodiff::lessThan(Value lhs, Value rhs, int64_t slack,
                                     From from) {
  Forms greatest =
      ExtremumSplitter<arith::MaxSIOp, ScalarExpr::Kind::Max>(from).of(lhs);
  auto least = smallestOf(rhs, from);
  if (!greatest || !least)
    return greatest ? least.why() : greatest.why();
  SmallVector<Constraint> constraints;
  for (const LinearForm &a : *greatest)
    for (const LinearForm &b : *least) {
      Constraint constraint = lessThan(a, b, slack);
      if (!holdsAlways(constraint))
        constraints.push_back(constraint);
    }
  return constraints;
}

/// x = 0, for an x that is not negative: x < 1.
static Constraints isZero(Value x, Value zero, From from) {
  Reason why = because(x, "the comparison at {0} is for equality", x.getLoc());
  if (!matchPattern(zero, m_Zero()))
    return why;
  std::optional<LinearForm> form = LinearForm::of(x, {}, from);
  bool isDigit = form && form->constant.isNotNegative() &&
                 llvm::all_of(form->terms, [](const LinearForm::Term &term) {
                   return term.coefficient.isNotNegative() &&
                          term.dimension.digit &&
                          term.dimension.digit->isNotNegative();
                 });
  if (!isDigit)
    return why;
  return lessThan(x, zero, 1, from);
}

static Constraints ofComparison(arith::CmpIOp op,
                                arith::CmpIPredicate predicate, From from) {
  using arith::CmpIPredicate;
  switch (predicate) {
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
    return because(op.getOperation(),
                   "the comparison at {0} is for inequality, or of unsigned "
                   "numbers",
                   op.getOperation());
  }
}

/// Turns constraints of an operand into those of the result.
static void moveAxes(const triton::AxisMap &map,
                     MutableArrayRef<Constraint> constraints) {
  for (Constraint &constraint : constraints)
    constraint.form.moveAxes(map);
}

/// Collects the constraints whose conjunction `mask` is; an obstacle if there
/// are other conditions in it.
static Obstacle
collectConstraints(Value mask, SmallVectorImpl<Constraint> &found, From from) {
  if (!mask || matchPattern(mask, m_One()))
    return std::nullopt;
  Operation *op = mask.getDefiningOp();
  if (!op)
    return because(mask, "an argument or a loop gives it");
  if (auto comparison = dyn_cast<arith::CmpIOp>(op)) {
    Constraints constraints =
        ofComparison(comparison, comparison.getPredicate(), from);
    if (!constraints)
      return constraints.why();
    found.append(*constraints);
    return std::nullopt;
  }
  if (isa<arith::AndIOp>(op)) {
    Obstacle lhs = collectConstraints(op->getOperand(0), found, from);
    Obstacle rhs = collectConstraints(op->getOperand(1), found, from);
    return lhs ? lhs : rhs;
  }
  auto map = triton::AxisMap::ofMove(op);
  if (!map)
    return because(op, "`{0}` at {1} makes it", op->getName().getStringRef(),
                   op);
  size_t known = found.size();
  Obstacle others = collectConstraints(op->getOperand(0), found, from);
  moveAxes(*map, MutableArrayRef(found).drop_front(known));
  return others;
}

Constraints mlir::autodiff::constraintsOf(Value mask, From from) {
  SmallVector<Constraint> constraints;
  if (Obstacle others = collectConstraints(mask, constraints, from))
    return *others;
  return constraints;
}

Constraints mlir::autodiff::constraintsOfNot(Value condition) {
  Operation *op = condition.getDefiningOp();
  if (auto comparison = dyn_cast_or_null<arith::CmpIOp>(op))
    return ofComparison(comparison,
                        arith::invertPredicate(comparison.getPredicate()),
                        From::Launch);
  if (!isa_and_nonnull<arith::OrIOp>(op))
    return std::nullopt;
  Constraints lhs = constraintsOfNot(op->getOperand(0));
  Constraints rhs = constraintsOfNot(op->getOperand(1));
  if (!lhs || !rhs)
    return std::nullopt;
  lhs->append(*rhs);
  return lhs;
}

SmallVector<Constraint> mlir::autodiff::knownConstraintsOf(Value mask,
                                                           From from) {
  SmallVector<Constraint> constraints;
  collectConstraints(mask, constraints, from);
  return constraints;
}

//===----------------------------------------------------------------------===//
// Alternatives
//===----------------------------------------------------------------------===//

/// Conditions with more alternatives are not taken apart.
constexpr size_t kMostAlternatives = 16;

using Choice = std::optional<Alternatives>;

static Choice anyOf(Choice a, const Choice &b) {
  if (!a || !b || a->size() + b->size() > kMostAlternatives)
    return std::nullopt;
  a->append(*b);
  return a;
}

static Choice allOf(const Choice &a, const Choice &b) {
  if (!a || !b || a->size() * b->size() > kMostAlternatives)
    return std::nullopt;
  Alternatives products;
  for (const auto &x : *a)
    for (const auto &y : *b) {
      products.push_back(x);
      products.back().append(y);
    }
  return products;
}

static Choice ofEither(arith::CmpIOp op, arith::CmpIPredicate predicate) {
  auto alone = [](Constraints constraints) -> Choice {
    if (!constraints)
      return std::nullopt;
    return Alternatives{{constraints->begin(), constraints->end()}};
  };
  Value lhs = op.getLhs(), rhs = op.getRhs();
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return allOf(alone(lessThan(lhs, rhs, 1, From::Launch)),
                 alone(lessThan(rhs, lhs, 1, From::Launch)));
  case arith::CmpIPredicate::ne:
    return anyOf(alone(lessThan(lhs, rhs, 0, From::Launch)),
                 alone(lessThan(rhs, lhs, 0, From::Launch)));
  default:
    return alone(ofComparison(op, predicate, From::Launch));
  }
}

Choice mlir::autodiff::alternativesOf(Value condition, bool holds) {
  bool isTrue = matchPattern(condition, m_One());
  if (isTrue || matchPattern(condition, m_Zero()))
    return Alternatives(isTrue == holds ? 1 : 0);
  Operation *op = condition.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto comparison = dyn_cast<arith::CmpIOp>(op))
    return ofEither(comparison,
                    holds ? comparison.getPredicate()
                          : arith::invertPredicate(comparison.getPredicate()));
  if (isa<arith::AndIOp, arith::OrIOp>(op)) {
    Choice a = alternativesOf(op->getOperand(0), holds);
    Choice b = alternativesOf(op->getOperand(1), holds);
    return isa<arith::AndIOp>(op) == holds ? allOf(a, b) : anyOf(a, b);
  }
  if (isa<arith::XOrIOp>(op) && matchPattern(op->getOperand(1), m_One()))
    return alternativesOf(op->getOperand(0), !holds);
  auto map = triton::AxisMap::ofMove(op);
  if (!map)
    return std::nullopt;
  Choice found = alternativesOf(op->getOperand(0), holds);
  if (found)
    for (auto &all : *found)
      moveAxes(*map, all);
  return found;
}
