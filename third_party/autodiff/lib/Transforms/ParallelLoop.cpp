//===- ParallelLoop.cpp - Loops whose iterations stand alone --------------===//
#include "ParallelLoop.h"

#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;
using From = ScalarExpr::From;

/// The operands of a tree of `OpT`.
template <typename OpT>
static void collectLeaves(Value value, SmallVectorImpl<Value> &leaves) {
  if (auto op = value.getDefiningOp<OpT>()) {
    collectLeaves<OpT>(op.getLhs(), leaves);
    collectLeaves<OpT>(op.getRhs(), leaves);
    return;
  }
  leaves.push_back(value);
}

/// Whether every value of a form is a multiple of `step`.
static bool isMultiple(const LinearForm &form, int64_t step) {
  auto holds = [&](const ScalarExpr &number) {
    std::optional<int64_t> value = number.getConstant();
    return value && *value % step == 0;
  };
  return holds(form.constant) &&
         llvm::all_of(form.terms, [&](const LinearForm::Term &term) {
           return holds(term.coefficient);
         });
}

/// Whether no value of a form over program ids is negative.
static bool isNotNegative(const LinearForm &form, ArrayRef<ScalarExpr> digits) {
  return form.constant.isNotNegative() &&
         llvm::all_of(form.terms, [&](const LinearForm::Term &term) {
           const std::optional<ScalarExpr> &digit = term.dimension.digit;
           return digit && term.coefficient.isNotNegative() &&
                  (digit->isNotNegative() ||
                   llvm::is_contained(digits, *digit));
         });
}

namespace {
/// One of the numbers whose maximum a loop starts from, as it is or rounded
/// down (if it is not negative) to a multiple of the step.
struct Start {
  Value number;
  bool isRounded;
};
} // namespace

/// x, if `value` is x / step · step; else null.
static Value getUnrounded(Value value, int64_t step) {
  auto isStep = [&](Value factor) {
    APInt number;
    return matchPattern(factor, m_ConstantInt(&number)) &&
           number.getSExtValue() == step;
  };
  auto product = value.getDefiningOp<arith::MulIOp>();
  if (!product || !isStep(product.getRhs()))
    return {};
  auto quotient = product.getLhs().getDefiningOp<arith::DivSIOp>();
  return quotient && isStep(quotient.getRhs()) ? quotient.getLhs() : Value();
}

/// (Rounding keeps the order of numbers, so that a maximum may be rounded.)
static void collectStarts(Value lower, int64_t step,
                          SmallVectorImpl<Start> &starts,
                          bool isRounded = false) {
  SmallVector<Value> leaves;
  collectLeaves<arith::MaxSIOp>(lower, leaves);
  for (Value leaf : leaves)
    if (Value number = getUnrounded(leaf, step))
      collectStarts(number, step, starts, /*isRounded=*/true);
    else
      starts.push_back({leaf, isRounded});
}

/// Whether a loop that starts at `lower` runs through multiples of `step`, from
/// zero on.
static bool startsOnGrid(Value lower, int64_t step,
                         ArrayRef<ScalarExpr> digits) {
  SmallVector<Start> starts;
  collectStarts(lower, step, starts);
  bool positive = false;
  for (const Start &start : starts) {
    auto form = LinearForm::of(start.number, {}, From::Memory);
    if (!form || (!start.isRounded && !isMultiple(*form, step)))
      return false;
    positive |= isNotNegative(*form, digits);
  }
  return positive;
}

/// The comparisons that all have to hold for a program to run the loop at all;
/// none if it takes something else.
static std::optional<SmallVector<arith::CmpIOp>> findGuards(scf::ForOp loop) {
  SmallVector<arith::CmpIOp> guards;
  SmallVector<Value> leaves;
  if (Value condition = getEnd(loop).condition)
    collectLeaves<arith::AndIOp>(condition, leaves);
  for (Value leaf : leaves) {
    auto guard = leaf.getDefiningOp<arith::CmpIOp>();
    if (!guard || !ScalarExpr::of(guard.getLhs(), From::Memory) ||
        !ScalarExpr::of(guard.getRhs(), From::Memory))
      return std::nullopt;
    guards.push_back(guard);
  }
  return guards;
}

std::optional<ParallelLoop> ParallelLoop::of(scf::ForOp loop, scf::ForOp primal,
                                             ArrayRef<ScalarExpr> digits) {
  if (!loop->hasAttr(kParallelAttr) || primal.getUnsignedCmp())
    return std::nullopt;
  std::optional<ScalarExpr> lower =
      ScalarExpr::of(primal.getLowerBound(), From::Memory);
  std::optional<ScalarExpr> upper =
      ScalarExpr::of(getEnd(primal).end, From::Memory);
  std::optional<ScalarExpr> step = ScalarExpr::of(primal.getStep());
  if (!lower || !upper || !step || step->dependsOnProgramId() ||
      !findGuards(primal))
    return std::nullopt;
  std::optional<int64_t> constant = step->getConstant();
  bool startVaries = lower->dependsOnProgramId() && constant && *constant > 0 &&
                     startsOnGrid(primal.getLowerBound(), *constant, digits);
  if (startVaries)
    lower = ScalarExpr::constant(0);
  return ParallelLoop(loop, primal, *lower, *step, *upper, startVaries);
}

std::optional<AccessSpace>
ParallelLoop::findSpace(Operation *access, llvm::json::Value count) const {
  AccessSpace::Renumbering numbers = numberAlike(std::move(count));
  std::optional<AccessSpace> space = AccessSpace::of(access, &numbers);
  if (!space || !space->isExact())
    space = AccessSpace::of(access, &numbers, From::Memory);
  return space && space->isExact() ? space : std::nullopt;
}

llvm::json::Value ParallelLoop::count() const {
  auto most = [](const ScalarExpr &number) -> llvm::json::Value {
    if (number.dependsOnProgramId())
      return Array{"maxpids", number.toJSON()};
    return number.toJSON();
  };
  llvm::json::Value span =
      base.dependsOnProgramId()
          ? most(upper - base)
          : llvm::json::Value(Array{"sub", most(upper), base.toJSON()});
  return Array{"max", Array{"ceildiv", std::move(span), step.toJSON()}, 0};
}

bool ParallelLoop::isUniform() const {
  return !startVaries && !base.dependsOnProgramId() &&
         !upper.dependsOnProgramId() && findGuards(primal)->empty();
}

bool ParallelLoop::hasSameBase(ArrayRef<ScalarExpr> digits) const {
  return llvm::none_of(digits, [&](const ScalarExpr &digit) {
    return dependsOnDigit(base, digit);
  });
}

bool ParallelLoop::dependsOn(const ScalarExpr &digit) const {
  auto moves = [&](Value value) {
    return dependsOnDigit(*ScalarExpr::of(value, From::Memory), digit);
  };
  return dependsOnDigit(upper, digit) ||
         (startVaries && moves(scf::ForOp(primal).getLowerBound())) ||
         llvm::any_of(*findGuards(primal), [&](arith::CmpIOp guard) {
           return moves(guard.getLhs()) || moves(guard.getRhs());
         });
}

LogicalResult ParallelLoop::bind(Regrid &regrid, OpBuilder &b, Value number,
                                 Value index) const {
  scf::ForOp derived = loop;
  scf::ForOp original = primal;
  Location loc = derived.getLoc();
  Value induction = derived.getInductionVar();
  Value iteration = castInteger(b, loc, number, induction.getType());
  if (startVaries) {
    Value start = regrid.get(original.getLowerBound());
    Value width = regrid.get(original.getStep());
    if (!start || !width)
      return failure();
    start = arith::DivSIOp::create(b, loc, start, width);
    if (!mutation::isMade("exchange:numbers from the start of the loop"))
      iteration = arith::SubIOp::create(
          b, loc, iteration, castInteger(b, loc, start, iteration.getType()));
  }
  regrid.bind(induction, iteration, startVaries);
  // The index itself does not depend on where the loop starts.
  Dimension dimension{Dimension::Kind::Loop};
  dimension.loop = loop;
  std::optional<LinearForm> expected =
      LinearForm::of(original.getLowerBound(), {}, From::Memory);
  if (!expected)
    return success();
  *expected =
      *expected + LinearForm{ScalarExpr::constant(0), {{dimension, step}}};
  for (Operation &op : derived.getBody()->without_terminator()) {
    if (op.getNumResults() != 1 || op.getResult(0).getType() != index.getType())
      continue;
    std::optional<LinearForm> form =
        LinearForm::of(op.getResult(0), {}, From::Memory);
    if (form && *form == *expected)
      regrid.bind(op.getResult(0), index, false);
  }
  return success();
}

/// ⌊x / divisor⌋, or −1 if that is less.
static Value floorDivide(OpBuilder &b, Location loc, Value x, int64_t divisor) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc,
                                     b.getIntegerAttr(x.getType(), value));
  };
  Value shifted = arith::AddIOp::create(
      b, loc, arith::MaxSIOp::create(b, loc, x, constant(-divisor)),
      constant(divisor));
  Value quotient = arith::DivSIOp::create(b, loc, shifted, constant(divisor));
  return arith::SubIOp::create(b, loc, quotient, constant(1));
}

namespace {
/// A bound c·digit + rest (an SSA value) of the index.
struct AffineBound {
  int64_t coefficient;
  Value rest;
};
} // namespace

static FailureOr<SmallVector<AffineBound>>
toAffine(ArrayRef<Value> leaves, const ScalarExpr &digit, Regrid &atZero) {
  SmallVector<AffineBound> bounds;
  for (Value leaf : leaves) {
    std::optional<LinearForm> form = LinearForm::of(leaf, {}, From::Memory);
    if (!form)
      return failure();
    int64_t coefficient = 0;
    for (const LinearForm::Term &term : form->terms) {
      if (term.dimension.kind != Dimension::Kind::Program)
        return failure();
      if (*term.dimension.digit == digit) {
        std::optional<int64_t> constant = term.coefficient.getConstant();
        if (!constant)
          return failure();
        coefficient = *constant;
      } else if (dependsOnDigit(*term.dimension.digit, digit)) {
        return failure();
      }
    }
    Value rest = atZero.get(leaf);
    if (!rest)
      return failure();
    bounds.push_back({coefficient, rest});
  }
  return bounds;
}

/// What is no more than zero where a comparison holds: x − y + 1 if x < y.
static FailureOr<AffineBound> toStart(OpBuilder &b, arith::CmpIOp guard,
                                      const ScalarExpr &digit, Type type,
                                      Regrid &atZero) {
  using arith::CmpIPredicate;
  Value less = guard.getLhs(), more = guard.getRhs();
  CmpIPredicate predicate = guard.getPredicate();
  if (predicate == CmpIPredicate::sgt || predicate == CmpIPredicate::sge)
    std::swap(less, more);
  else if (predicate != CmpIPredicate::slt && predicate != CmpIPredicate::sle)
    return failure();
  auto bounds = toAffine({less, more}, digit, atZero);
  if (failed(bounds))
    return failure();
  Location loc = guard.getLoc();
  AffineBound x = (*bounds)[0], y = (*bounds)[1];
  Value rest = arith::SubIOp::create(b, loc, castInteger(b, loc, x.rest, type),
                                     castInteger(b, loc, y.rest, type));
  if (predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sgt)
    rest = arith::AddIOp::create(b, loc, rest, integerOf(b, loc, type, 1));
  return AffineBound{x.coefficient - y.coefficient, rest};
}

FailureOr<std::pair<Value, Value>>
ParallelLoop::invert(OpBuilder &b, const ScalarExpr &digit, Value extent,
                     Value index, Regrid &atZero) const {
  scf::ForOp original = primal;
  Location loc = original.getLoc();
  Type type = index.getType();
  SmallVector<Start> from;
  if (startVaries)
    collectStarts(original.getLowerBound(), *step.getConstant(), from);
  SmallVector<Value> uppers,
      lowers =
          llvm::map_to_vector(from, [](const Start &s) { return s.number; });
  collectLeaves<arith::MinSIOp>(getEnd(original).end, uppers);
  auto starts = toAffine(lowers, digit, atZero);
  auto ends = toAffine(uppers, digit, atZero);
  if (failed(starts) || failed(ends))
    return failure();

  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  };
  Value zero = constant(0), one = constant(1), first = zero;
  Value end = castInteger(b, loc, extent, type);
  // A start c·d + r ≤ i holds for d ≤ ⌊(i − r)/c⌋, or with c < 0 for
  // d > ⌊(r − i − 1)/−c⌋; an end i < c·d + r where a start does not.
  auto apply = [&](const AffineBound &bound, Value index, bool isStart) {
    Value less = arith::SubIOp::create(b, loc, index, bound.rest);
    if (bound.coefficient == 0) {
      Value fails = arith::CmpIOp::create(b, loc,
                                          isStart ? arith::CmpIPredicate::slt
                                                  : arith::CmpIPredicate::sge,
                                          less, zero);
      end = arith::SelectOp::create(b, loc, fails, zero, end);
      return;
    }
    Value distance = less;
    if (bound.coefficient < 0)
      distance = arith::SubIOp::create(
          b, loc, arith::SubIOp::create(b, loc, bound.rest, index), one);
    Value last = floorDivide(b, loc, distance, std::abs(bound.coefficient));
    Value next = last;
    if (!mutation::isMade("exchange:bounds off by one"))
      next = arith::AddIOp::create(b, loc, last, one);
    if (isStart == (bound.coefficient > 0))
      end = arith::MinSIOp::create(b, loc, end, next);
    else
      first = arith::MaxSIOp::create(b, loc, first, next);
  };
  // What is rounded down to a multiple of the step is no more than another
  // multiple if it is less than the next one.
  Value before = arith::AddIOp::create(
      b, loc, index, constant(step.getConstant().value_or(1) - 1));
  for (auto [bound, start] : llvm::zip_equal(*starts, from))
    apply(bound, start.isRounded ? before : index, /*isStart=*/true);
  for (const AffineBound &bound : *ends)
    apply(bound, index, /*isStart=*/false);
  std::optional<SmallVector<arith::CmpIOp>> guards = findGuards(primal);
  for (arith::CmpIOp guard : *guards) {
    FailureOr<AffineBound> start = toStart(b, guard, digit, type, atZero);
    if (failed(start))
      return failure();
    apply(*start, zero, /*isStart=*/true);
  }
  return std::pair(first, end);
}
