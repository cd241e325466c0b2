//===- BoundInversion.cpp - Which programs a bound lets through -----------===//
#include "BoundInversion.h"

#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::autodiff;
using From = ScalarExpr::From;

BoundInversion::BoundInversion(OpBuilder &builder, Location loc,
                               const ScalarExpr &digit, Value extent,
                               Regrid &atZero)
    : b(builder), loc(loc), digit(digit), atZero(atZero),
      type(extent.getType()), first(constant(0)), end(extent) {}

Value BoundInversion::constant(int64_t value) {
  return integerOf(b, loc, type, value);
}

/// ⌊x / divisor⌋, or −1 if that is less.
Value BoundInversion::floorDivide(Value x, int64_t divisor) {
  Value shifted = arith::AddIOp::create(
      b, loc, arith::MaxSIOp::create(b, loc, x, constant(-divisor)),
      constant(divisor));
  Value quotient = arith::DivSIOp::create(b, loc, shifted, constant(divisor));
  return arith::SubIOp::create(b, loc, quotient, constant(1));
}

/// The bound as a multiple of the digit and a rest; none if it is not.
std::optional<BoundInversion::Affine> BoundInversion::asAffine(Value bound) {
  std::optional<LinearForm> form = LinearForm::of(bound, {}, From::Memory);
  if (!form)
    return std::nullopt;
  int64_t coefficient = 0;
  for (const LinearForm::Term &term : form->terms) {
    if (term.dimension.kind != Dimension::Kind::Program)
      return std::nullopt;
    std::optional<int64_t> number = term.coefficient.getConstant();
    if (*term.dimension.digit == digit && number)
      coefficient = *number;
    else if (dependsOnDigit(*term.dimension.digit, digit))
      return std::nullopt;
  }
  Value rest = atZero.get(bound);
  if (!rest)
    return std::nullopt;
  return Affine{coefficient, castInteger(b, loc, rest, type)};
}

/// A start c·d + r ≤ i holds for d ≤ ⌊(i − r)/c⌋, or if c < 0, for d > ⌊(r − i
/// − 1)/−c⌋. An end i < c·d + r holds where the start does not.
void BoundInversion::keepAffine(const Affine &bound, Value index, Side side) {
  bool isStart = side == Side::Start;
  Value zero = constant(0), one = constant(1);
  Value less = arith::SubIOp::create(b, loc, index, bound.rest);
  if (bound.coefficient == 0) {
    Value fails = arith::CmpIOp::create(
        b, loc, isStart ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sge,
        less, zero);
    end = arith::SelectOp::create(b, loc, fails, zero, end);
    return;
  }
  Value distance = less;
  if (bound.coefficient < 0)
    distance = arith::SubIOp::create(
        b, loc, arith::SubIOp::create(b, loc, bound.rest, index), one);
  Value last = floorDivide(distance, std::abs(bound.coefficient));
  Value next = last;
  if (!mutation::isMade("interchange:bounds off by one"))
    next = arith::AddIOp::create(b, loc, last, one);
  if (isStart == (bound.coefficient > 0))
    end = arith::MinSIOp::create(b, loc, end, next);
  else
    first = arith::MaxSIOp::create(b, loc, first, next);
}

/// Whether a number is known never to be negative.
static bool isNotNegative(Value number) {
  std::optional<ScalarExpr> expression = ScalarExpr::of(number, From::Memory);
  return expression && expression->isNotNegative();
}

/// Removes one operation from a bound, and returns the index for which
/// comparisons with the rest give the same result, as a start and as an end;
/// none if that is not possible.
std::optional<BoundInversion::Index> BoundInversion::undo(Value &bound,
                                                          Index index) {
  Operation *op = bound.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isa<arith::ExtSIOp, HeldOp>(op)) {
    bound = op->getOperand(0);
    return index;
  }
  if (op->getNumOperands() != 2)
    return std::nullopt;
  Value lhs = op->getOperand(0), rhs = op->getOperand(1);
  APInt number;
  bool isKnown = matchPattern(rhs, m_ConstantInt(&number));
  int64_t known = isKnown ? number.getSExtValue() : 0;
  if (isa<arith::DivSIOp>(op)) {
    // a / k ≤ i is a ≤ k·i + k − 1 if one of them is not negative: the quotient
    // is rounded down then, and up otherwise.
    if (known <= 0 || !(index.isNotNegative() || isNotNegative(lhs)))
      return std::nullopt;
    bound = lhs;
    if (index.least)
      *index.least = *index.least * known + known - 1;
    Value scaled = arith::MulIOp::create(b, loc, index.value, constant(known));
    return Index{arith::AddIOp::create(b, loc, scaled, constant(known - 1)),
                 index.least};
  }
  if (isa<arith::MulIOp>(op)) {
    // a·k ≤ i is a ≤ ⌊i / k⌋.
    if (known <= 0 || !index.least)
      return std::nullopt;
    bound = lhs;
    int64_t least = llvm::divideFloorSigned(*index.least, known);
    // Division rounds down if the dividend is not negative.
    int64_t shift = std::max<int64_t>(-least, 0);
    Value shifted =
        arith::AddIOp::create(b, loc, index.value, constant(shift * known));
    Value quotient = arith::DivSIOp::create(b, loc, shifted, constant(known));
    return Index{arith::SubIOp::create(b, loc, quotient, constant(shift)),
                 least};
  }
  if (isa<arith::AddIOp, arith::SubIOp>(op) && isKnown) {
    bound = lhs;
    if (isa<arith::SubIOp>(op))
      known = -known;
    if (index.least)
      *index.least -= known;
    return Index{arith::SubIOp::create(b, loc, index.value, constant(known)),
                 index.least};
  }
  return std::nullopt;
}

/// Keeps the values for which one of two ends admits the index. The other end
/// must not depend on the digit: it keeps all values, or none.
LogicalResult BoundInversion::keepEither(Value one, Value other, Index index) {
  std::optional<Affine> fixed = asAffine(one);
  if (!fixed || fixed->coefficient != 0) {
    std::swap(one, other);
    fixed = asAffine(one);
  }
  if (!fixed || fixed->coefficient != 0)
    return failure();
  Value all = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                    index.value, fixed->rest);
  auto [firstOfAll, endOfAll] = getRange();
  if (failed(keep(other, index, Side::End)))
    return failure();
  first = arith::SelectOp::create(b, loc, all, firstOfAll, first);
  end = arith::SelectOp::create(b, loc, all, endOfAll, end);
  return success();
}

LogicalResult BoundInversion::keep(Value bound, Index index, Side side) {
  if (std::optional<Affine> affine = asAffine(bound)) {
    keepAffine(*affine, index.value, side);
    return success();
  }
  // All operands of a maximum of starts, or a minimum of ends, have to admit
  // it.
  Operation *op = bound.getDefiningOp();
  bool isBoth = side == Side::Start ? isa_and_present<arith::MaxSIOp>(op)
                                    : isa_and_present<arith::MinSIOp>(op);
  if (isBoth)
    return success(succeeded(keep(op->getOperand(0), index, side)) &&
                   succeeded(keep(op->getOperand(1), index, side)));
  if (side == Side::End && isa_and_present<arith::MaxSIOp>(op))
    return keepEither(op->getOperand(0), op->getOperand(1), index);
  std::optional<Index> undone = undo(bound, index);
  return undone ? keep(bound, *undone, side) : failure();
}

LogicalResult BoundInversion::keepStarted(Value start, Index index) {
  return keep(start, index, Side::Start);
}

LogicalResult BoundInversion::keepUnended(Value end, Index index) {
  return keep(end, index, Side::End);
}

/// x < y as a start is x − y + 1 ≤ 0.
LogicalResult BoundInversion::keepWhere(arith::CmpIOp comparison) {
  using arith::CmpIPredicate;
  Value less = comparison.getLhs(), more = comparison.getRhs();
  CmpIPredicate predicate = comparison.getPredicate();
  if (predicate == CmpIPredicate::sgt || predicate == CmpIPredicate::sge)
    std::swap(less, more);
  else if (predicate != CmpIPredicate::slt && predicate != CmpIPredicate::sle)
    return failure();
  std::optional<Affine> x = asAffine(less), y = asAffine(more);
  if (!x || !y)
    return failure();
  Value rest = arith::SubIOp::create(b, loc, x->rest, y->rest);
  if (predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sgt)
    rest = arith::AddIOp::create(b, loc, rest, constant(1));
  keepAffine({x->coefficient - y->coefficient, rest}, constant(0), Side::Start);
  return success();
}
