//===- ScalarExpr.cpp - Integers that a launch can evaluate ---------------===//
#include "autodiff/Analysis/ScalarExpr.h"

#include "ScalarSum.h"
#include "autodiff/Analysis/IndexVisitor.h"
#include "autodiff/Analysis/Pointers.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;
using Kind = ScalarExpr::Kind;

static std::optional<int64_t> fold(ScalarExpr::Kind kind, int64_t a,
                                   int64_t b) {
  int64_t result;
  switch (kind) {
  case Kind::Add:
    return llvm::AddOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case Kind::Sub:
    return llvm::SubOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case Kind::Mul:
    return llvm::MulOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case Kind::Div:
    return b == 0 || b == -1 ? std::nullopt : std::optional(a / b);
  case Kind::Rem:
    return b == 0 || b == -1 ? std::nullopt : std::optional(a % b);
  case Kind::CeilDiv:
    return b == 0 || b == -1 ? std::nullopt
                             : std::optional(llvm::divideCeilSigned(a, b));
  case Kind::Min:
    return std::min(a, b);
  case Kind::Max:
    return std::max(a, b);
  default:
    return std::nullopt;
  }
}

ScalarExpr::ScalarExpr(ExprAttr of) : number(of.getConstant()) {
  if (!number)
    expr = of;
}

ScalarExpr ScalarExpr::argument(MLIRContext *context, unsigned index) {
  return ScalarExpr(ExprAttr::get(context, Kind::Argument, index));
}
ScalarExpr ScalarExpr::grid(MLIRContext *context, unsigned axis) {
  return ScalarExpr(ExprAttr::get(context, Kind::Grid, axis));
}
ScalarExpr ScalarExpr::programId(MLIRContext *context, unsigned axis) {
  return ScalarExpr(ExprAttr::get(context, Kind::ProgramId, axis));
}

ExprAttr ScalarExpr::get(MLIRContext *context) const {
  if (expr)
    return expr;
  // A launch cannot evaluate it, either.
  return number ? ExprAttr::get(context, *number)
                : divOf(ExprAttr::get(context, 1), 0);
}

ScalarExpr ScalarExpr::make(Kind kind, const ScalarExpr &lhs,
                            const ScalarExpr &rhs) {
  if (!lhs.expr && !rhs.expr)
    return ScalarExpr();
  MLIRContext *context = (lhs.expr ? lhs.expr : rhs.expr).getContext();
  return ScalarExpr(ExprAttr::get(kind, lhs.get(context), rhs.get(context)));
}

/// Adds the factors of a product, and multiplies `number` by those that are
/// numbers; false if that is too large.
static bool collectFactors(const ScalarExpr &e,
                           SmallVectorImpl<ScalarExpr> &factors,
                           int64_t &number) {
  if (std::optional<int64_t> constant = e.getConstant())
    return !llvm::MulOverflow(number, *constant, number);
  if (e.getKind() == ScalarExpr::Kind::Mul)
    return collectFactors(e.getLhs(), factors, number) &&
           collectFactors(e.getRhs(), factors, number);
  factors.push_back(e);
  return true;
}

ScalarExpr ScalarExpr::multiply(const ScalarExpr &lhs, const ScalarExpr &rhs) {
  auto product = [](const ScalarExpr &a, const ScalarExpr &b) {
    return make(Kind::Mul, a, b);
  };
  SmallVector<ScalarExpr> factors;
  int64_t number = 1;
  if (!collectFactors(lhs, factors, number) ||
      !collectFactors(rhs, factors, number))
    return product(lhs, rhs);
  llvm::stable_sort(factors, [](const ScalarExpr &a, const ScalarExpr &b) {
    return a.expr.compare(b.expr) < 0;
  });
  if (number == 0)
    return constant(0);
  if (number != 1)
    factors.push_back(constant(number));
  ScalarExpr all = factors.front();
  for (const ScalarExpr &factor : llvm::drop_begin(factors))
    all = product(all, factor);
  return all;
}

ScalarExpr ScalarExpr::binary(Kind kind, ScalarExpr lhs, ScalarExpr rhs) {
  if (!lhs.hasValue() || !rhs.hasValue())
    return ScalarExpr();
  std::optional<int64_t> a = lhs.getConstant(), b = rhs.getConstant();
  bool commutes = kind == Kind::Add || kind == Kind::Mul || kind == Kind::Min ||
                  kind == Kind::Max;
  // Constants stand on the right, so that equal products compare equal.
  if (commutes && a && !b)
    return binary(kind, rhs, lhs);
  if (a && b)
    if (std::optional<int64_t> folded = fold(kind, *a, *b))
      return constant(*folded);
  bool zeroRhs = b == 0, oneRhs = b == 1;
  if (kind == Kind::Add || kind == Kind::Sub)
    if (std::optional<ScalarExpr> sum = ScalarSum::combine(kind, lhs, rhs))
      return *sum;
  switch (kind) {
  case Kind::Sub:
    // 0 − (a − b) = b − a
    if (a == 0 && rhs.getKind() == Kind::Sub)
      return binary(Kind::Sub, rhs.getRhs(), rhs.getLhs());
    [[fallthrough]];
  case Kind::Add:
    // a ± (b · −1) = a ∓ b
    if (rhs.getKind() == Kind::Mul && rhs.getRhs().getConstant() == -1)
      return binary(kind == Kind::Add ? Kind::Sub : Kind::Add, lhs,
                    rhs.getLhs());
    if (zeroRhs)
      return lhs;
    break;
  case Kind::Mul:
    if (oneRhs)
      return lhs;
    if (zeroRhs)
      return rhs;
    return multiply(lhs, rhs);
  case Kind::Div:
  case Kind::CeilDiv:
  case Kind::Rem:
    if (oneRhs)
      return kind == Kind::Rem ? constant(0) : lhs;
    if (std::optional<ScalarExpr> divided =
            ScalarSum::divide(kind, lhs, b.value_or(0)))
      return *divided;
    break;
  case Kind::Max:
    if (zeroRhs && lhs.isNotNegative())
      return lhs;
    break;
  default:
    break;
  }
  return make(kind, lhs, rhs);
}

/// Whether no operation of the kernel can change what `argument` points to.
static bool isOnlyRead(BlockArgument argument) {
  return !mayBeAccessed(argument,
                        [](Operation *op) { return !isa<triton::LoadOp>(op); });
}

/// The element that a load of one integer reads.
static std::optional<ScalarExpr> ofLoad(triton::LoadOp load) {
  if (load.getMask() || load.getIsVolatile() ||
      !(load.getType().isInteger(32) || load.getType().isInteger(64)))
    return std::nullopt;
  ScalarExpr place = ScalarExpr::constant(0);
  Value pointer = load.getPtr();
  while (auto sum = pointer.getDefiningOp<triton::AddPtrOp>()) {
    std::optional<ScalarExpr> offset =
        ScalarExpr::of(sum.getOffset(), ScalarExpr::From::Memory);
    if (!offset)
      return std::nullopt;
    place = place + *offset;
    pointer = sum.getPtr();
  }
  auto argument = dyn_cast<BlockArgument>(pointer);
  if (!argument || !isa<triton::FuncOp>(argument.getOwner()->getParentOp()) ||
      !isOnlyRead(argument))
    return std::nullopt;
  return ScalarExpr(ExprAttr::get(Kind::Element, place.get(load.getContext()),
                                  argument.getArgNumber()));
}

/// One if a < b, else zero.
static ScalarExpr isLess(const ScalarExpr &a, const ScalarExpr &b) {
  ScalarExpr above =
      ScalarExpr::binary(Kind::Max, b - a, ScalarExpr::constant(0));
  return ScalarExpr::binary(Kind::Min, above, ScalarExpr::constant(1));
}

/// One where `condition` holds, else zero.
static std::optional<ScalarExpr> ofCondition(Value condition,
                                             ScalarExpr::From from) {
  auto op = condition.getDefiningOp<arith::CmpIOp>();
  if (!op)
    return std::nullopt;
  auto a = ScalarExpr::of(op.getLhs(), from);
  auto b = ScalarExpr::of(op.getRhs(), from);
  if (!a || !b)
    return std::nullopt;
  ScalarExpr one = ScalarExpr::constant(1);
  switch (op.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return isLess(*a, *b);
  case arith::CmpIPredicate::sgt:
    return isLess(*b, *a);
  case arith::CmpIPredicate::sle:
    return one - isLess(*b, *a);
  case arith::CmpIPredicate::sge:
    return one - isLess(*a, *b);
  case arith::CmpIPredicate::ne:
    return isLess(*a, *b) + isLess(*b, *a);
  case arith::CmpIPredicate::eq:
    return one - isLess(*a, *b) - isLess(*b, *a);
  default:
    return std::nullopt;
  }
}

/// Whether this may be computed where it is not used: nothing is divided by a
/// number that may be zero.
static bool isSpeculatable(const ScalarExpr &expr) {
  bool divides =
      llvm::is_contained({Kind::Div, Kind::Rem, Kind::CeilDiv}, expr.getKind());
  return (!divides || expr.getRhs().getConstant().value_or(0) > 0) &&
         llvm::all_of(expr.getOperands(), [](const ScalarExpr &operand) {
           return isSpeculatable(operand);
         });
}

/// The smaller, or larger, of two numbers, as a condition chooses it.
static std::optional<ScalarExpr> chooseExtremum(Value condition,
                                                const ScalarExpr &whenTrue,
                                                const ScalarExpr &whenFalse,
                                                ScalarExpr::From from) {
  using arith::CmpIPredicate;
  auto op = condition.getDefiningOp<arith::CmpIOp>();
  auto a = op ? ScalarExpr::of(op.getLhs(), from) : std::nullopt;
  auto b = op ? ScalarExpr::of(op.getRhs(), from) : std::nullopt;
  if (!a || !b)
    return std::nullopt;
  bool isSame = *a == whenTrue && *b == whenFalse;
  if (!isSame && !(*a == whenFalse && *b == whenTrue))
    return std::nullopt;
  CmpIPredicate predicate = op.getPredicate();
  bool isLess =
      predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sle;
  if (!isLess && predicate != CmpIPredicate::sgt &&
      predicate != CmpIPredicate::sge)
    return std::nullopt;
  return ScalarExpr::binary(isLess == isSame ? Kind::Min : Kind::Max, *a, *b);
}

/// condition ? a : b, as b + [condition]·(a − b).
static std::optional<ScalarExpr> choose(Value condition, Value whenTrue,
                                        Value whenFalse,
                                        ScalarExpr::From from) {
  // A condition itself is no number.
  if (whenTrue.getType().isInteger(1))
    return std::nullopt;
  auto a = ScalarExpr::of(whenTrue, from);
  auto b = ScalarExpr::of(whenFalse, from);
  if (!a || !b)
    return std::nullopt;
  if (auto extremum = chooseExtremum(condition, *a, *b, from))
    return extremum;
  auto holds = ofCondition(condition, from);
  if (!holds || !isSpeculatable(*a) || !isSpeculatable(*b))
    return std::nullopt;
  return *b + *holds * (*a - *b);
}

namespace {
using Scalar = std::optional<ScalarExpr>;

/// Reads the operation that gives `value`.
struct ScalarReader : IndexVisitor<ScalarReader, Scalar> {
  ScalarReader(Value value, ScalarExpr::From from) : value(value), from(from) {}

  Scalar ofSum(Value a, Value b) { return combine(Kind::Add, a, b); }
  Scalar ofDifference(Value a, Value b) { return combine(Kind::Sub, a, b); }
  Scalar ofProduct(Value a, Value b) { return combine(Kind::Mul, a, b); }
  Scalar ofSame(Value source);
  Scalar ofMoved(Value, const triton::AxisMap &) { return std::nullopt; }
  Scalar ofRange(triton::MakeRangeOp) { return std::nullopt; }
  Scalar ofOther(Operation *op);

private:
  Scalar combine(Kind kind, Value a, Value b, bool isUnsigned = false);

  Value value;
  ScalarExpr::From from;
};
} // namespace

Scalar ScalarReader::combine(Kind kind, Value a, Value b, bool isUnsigned) {
  Scalar lhs = ScalarExpr::of(a, from), rhs = ScalarExpr::of(b, from);
  if (!lhs || !rhs ||
      (isUnsigned && !(lhs->isNotNegative() && rhs->isNotNegative())))
    return std::nullopt;
  return ScalarExpr::binary(kind, *lhs, *rhs);
}

/// A truncated i1 or i8 is not the number it came from.
Scalar ScalarReader::ofSame(Value source) {
  unsigned width =
      value.getType().isIndex() ? 64 : value.getType().getIntOrFloatBitWidth();
  return width < 32 ? std::nullopt : ScalarExpr::of(source, from);
}

Scalar ScalarReader::ofOther(Operation *op) {
  MLIRContext *context = op->getContext();
  unsigned number = cast<OpResult>(value).getResultNumber();
  auto binary = [&](Kind kind, bool isUnsigned = false) {
    return [this, kind, isUnsigned](Operation *op) {
      return combine(kind, op->getOperand(0), op->getOperand(1), isUnsigned);
    };
  };
  return llvm::TypeSwitch<Operation *, Scalar>(op)
      .Case([&](triton::GetProgramIdOp id) {
        return ScalarExpr::programId(context, id.getAxisAsInt());
      })
      .Case([&](triton::GetNumProgramsOp count) {
        return ScalarExpr::grid(context, count.getAxisAsInt());
      })
      .Case([&](SizeOp size) { return ScalarExpr(size.getExpression()); })
      .Case([&](triton::LoadOp load) {
        return from == ScalarExpr::From::Memory ? ofLoad(load) : std::nullopt;
      })
      .Case([&](arith::TruncIOp op) { return ofSame(op.getIn()); })
      .Case([&](arith::SelectOp op) {
        return choose(op.getCondition(), op.getTrueValue(), op.getFalseValue(),
                      from);
      })
      .Case([&](scf::IfOp op) {
        return choose(op.getCondition(), op.thenYield().getOperand(number),
                      op.elseYield().getOperand(number), from);
      })
      .Case<arith::DivSIOp>(binary(Kind::Div))
      .Case<arith::DivUIOp>(binary(Kind::Div, /*isUnsigned=*/true))
      .Case<arith::RemSIOp>(binary(Kind::Rem))
      .Case<arith::CeilDivSIOp>(binary(Kind::CeilDiv))
      .Case<arith::MinSIOp>(binary(Kind::Min))
      .Case<arith::MaxSIOp>(binary(Kind::Max))
      .Default(Scalar());
}

Scalar ScalarExpr::of(Value value, From from) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return constant(number.getSExtValue());
  if (!value.getType().isSignlessInteger() && !value.getType().isIndex())
    return std::nullopt;
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return ScalarReader(value, from).visit(value.getDefiningOp());
  return isa<triton::FuncOp>(argument.getOwner()->getParentOp())
             ? Scalar(ScalarExpr::argument(value.getContext(),
                                           argument.getArgNumber()))
             : std::nullopt;
}

std::pair<ScalarExpr, int64_t> ScalarExpr::asMultiple() const {
  ScalarSum sum;
  if (sum.add(*this, 1) && sum.getTerms().size() == 1)
    return sum.getTerms().front();
  return {*this, 1};
}

std::optional<ScalarExpr>
ScalarExpr::dividedBy(const ScalarExpr &divisor) const {
  if (*this == divisor)
    return constant(1);
  auto [unit, count] = asMultiple();
  int64_t number = divisor.getConstant().value_or(0);
  if (number <= 0 || count % number != 0)
    return std::nullopt;
  return unit * constant(count / number);
}

int64_t ScalarExpr::countOf(const ScalarExpr &unit) const {
  ScalarSum sum;
  if (sum.add(*this, 1))
    for (const auto &[term, multiple] : sum.getTerms())
      if (term == unit)
        return multiple;
  return 0;
}

ScalarExpr::Kind ScalarExpr::getKind() const {
  return expr ? expr.getKind() : Kind::Constant;
}

SmallVector<ScalarExpr, 2> ScalarExpr::getOperands() const {
  SmallVector<ScalarExpr, 2> operands;
  if (getKind() >= Kind::Element)
    for (ExprAttr operand : {expr.getLhs(), expr.getRhs()})
      if (operand)
        operands.push_back(ScalarExpr(operand));
  return operands;
}

bool ScalarExpr::isProgramId() const { return getKind() == Kind::ProgramId; }

unsigned ScalarExpr::getAxis() const {
  assert(isProgramId() || getKind() == Kind::Grid);
  return expr.getNumber();
}

bool ScalarExpr::dependsOnProgramId() const {
  return mentions(Kind::ProgramId) || mentions(Kind::Element);
}

bool ScalarExpr::mentions(Kind part) const {
  return expr && expr.hasSubexpression(
                     [&](ExprAttr each) { return each.getKind() == part; });
}

bool ScalarExpr::isNotNegative() const {
  switch (getKind()) {
  case Kind::Constant:
    return number.value_or(-1) >= 0;
  case Kind::ProgramId:
  case Kind::Grid:
    return true;
  case Kind::Add:
  case Kind::Mul:
  case Kind::Div:
  case Kind::CeilDiv:
  case Kind::Min:
    return getLhs().isNotNegative() && getRhs().isNotNegative();
  case Kind::Rem:
    return getLhs().isNotNegative();
  case Kind::Max:
    return getLhs().isNotNegative() || getRhs().isNotNegative();
  default:
    return false;
  }
}

bool ScalarExpr::mentionsAxis(unsigned axis) const {
  return expr && expr.hasSubexpression([&](ExprAttr part) {
    return part.getKind() == Kind::ProgramId && part.getNumber() == axis;
  });
}

Value ScalarExpr::emit(OpBuilder &b, Location loc, ValueRange arguments) const {
  Type i64 = b.getI64Type();
  auto widen = [&](Value value) -> Value {
    return value.getType() == i64
               ? value
               : Value(arith::ExtSIOp::create(b, loc, i64, value));
  };
  if (number)
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(*number));
  switch (getKind()) {
  case Kind::Argument:
    return widen(arguments[expr.getNumber()]);
  case Kind::Grid:
    return widen(triton::GetNumProgramsOp::create(b, loc, expr.getNumber()));
  case Kind::ProgramId:
    return widen(triton::GetProgramIdOp::create(b, loc, expr.getNumber()));
  case Kind::Element:
    llvm_unreachable("derived kernels do not read places");
  case Kind::Add:
  case Kind::Sub:
  case Kind::Mul:
  case Kind::Div:
  case Kind::Rem:
  case Kind::CeilDiv:
  case Kind::Min:
  case Kind::Max:
    break;
  default:
    return SizeOp::create(b, loc, get(b.getContext()));
  }
  Value lhs = getLhs().emit(b, loc, arguments);
  Value rhs = getRhs().emit(b, loc, arguments);
  switch (getKind()) {
  case Kind::Add:
    return arith::AddIOp::create(b, loc, lhs, rhs);
  case Kind::Sub:
    return arith::SubIOp::create(b, loc, lhs, rhs);
  case Kind::Mul:
    return arith::MulIOp::create(b, loc, lhs, rhs);
  case Kind::Div:
    return arith::DivSIOp::create(b, loc, lhs, rhs);
  case Kind::Rem:
    return arith::RemSIOp::create(b, loc, lhs, rhs);
  case Kind::CeilDiv:
    return arith::CeilDivSIOp::create(b, loc, lhs, rhs);
  case Kind::Min:
    return arith::MinSIOp::create(b, loc, lhs, rhs);
  case Kind::Max:
    return arith::MaxSIOp::create(b, loc, lhs, rhs);
  default:
    llvm_unreachable("handled above");
  }
}

ExprAttr mlir::autodiff::mostOfPrograms(MLIRContext *context,
                                        const ScalarExpr &number) {
  ExprAttr expr = number.get(context);
  return number.dependsOnProgramId() ? ExprAttr::get(Kind::MostOfPrograms, expr)
                                     : expr;
}

ScalarExpr mlir::autodiff::tripCount(ScalarExpr lower, ScalarExpr upper,
                                     ScalarExpr step) {
  ScalarExpr count = ScalarExpr::binary(Kind::CeilDiv, upper - lower, step);
  // (n + c − 1) / c is ⌈n / c⌉, or neither is positive.
  if (count.getKind() == Kind::Div) {
    ScalarExpr sum = count.getLhs(), divisor = count.getRhs();
    std::optional<int64_t> c = divisor.getConstant();
    if (c && *c > 0 && sum.getKind() == Kind::Add &&
        sum.getRhs() == ScalarExpr::constant(*c - 1))
      count = ScalarExpr::binary(Kind::CeilDiv, sum.getLhs(), divisor);
  }
  return ScalarExpr::binary(Kind::Max, count, ScalarExpr::constant(0));
}
