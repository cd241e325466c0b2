//===- ParallelLoop.cpp - Loops whose iterations stand alone --------------===//
#include "ParallelLoop.h"

#include "BoundInversion.h"
#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Analysis/ProgramDigits.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Leaves.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Position.h"

using namespace mlir;
using namespace mlir::autodiff;
using From = ScalarExpr::From;

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

/// Whether a loop that starts at `lower` runs through multiples of `step`, from
/// zero on.
static bool startsOnGrid(Value lower, int64_t step,
                         ArrayRef<ScalarExpr> digits) {
  SmallVector<Value> starts;
  collectLeaves<arith::MaxSIOp>(lower, starts);
  bool positive = false;
  for (Value start : starts) {
    auto form = LinearForm::of(start, {}, From::Memory);
    if (!form || !form->isMultipleOf(step))
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

ReasonOr<ParallelLoop> ParallelLoop::of(scf::ForOp loop, scf::ForOp primal,
                                        ArrayRef<ScalarExpr> digits) {
  if (!loop->hasAttr(kParallelAttr)) {
    if (Obstacle order = findOrder(loop))
      return *order;
    return because(loop,
                   "iterations of the loop at {0} are not numbered from "
                   "zero on",
                   loop);
  }
  if (primal.getUnsignedCmp())
    return because(loop, "the loop at {0} compares unsigned numbers", loop);
  std::optional<ScalarExpr> lower =
      ScalarExpr::of(primal.getLowerBound(), From::Memory);
  std::optional<ScalarExpr> upper =
      ScalarExpr::of(getEnd(primal).end, From::Memory);
  std::optional<ScalarExpr> step = ScalarExpr::of(primal.getStep());
  if (!lower || !upper || !step || step->dependsOnProgramId())
    return because(loop,
                   "where the loop at {0} starts or ends is no number that "
                   "program ids and a launch determine",
                   loop);
  if (!findGuards(primal))
    return because(loop,
                   "some programs do not run the loop at {0} at all, by a "
                   "condition that is no comparison of program ids",
                   loop);
  std::optional<int64_t> constant = step->getConstant();
  bool startVaries = lower->dependsOnProgramId() && constant && *constant > 0 &&
                     startsOnGrid(primal.getLowerBound(), *constant, digits);
  if (startVaries)
    lower = ScalarExpr::constant(0);
  return ParallelLoop(loop, primal, *lower, *step, *upper, startVaries);
}

ExprAttr ParallelLoop::count() const {
  MLIRContext *context = scf::ForOp(loop).getContext();
  ExprAttr span =
      base.dependsOnProgramId()
          ? mostOfPrograms(context, upper - base)
          : subOf(mostOfPrograms(context, upper), base.get(context));
  return maxOf(ceilDivOf(span, step.get(context)), 0);
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
    if (!mutation::isMade("interchange:numbers from the start of the loop"))
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

SmallVector<Value>
ParallelLoop::findSharedPlaces(ArrayRef<ScalarExpr> digits) const {
  scf::ForOp derived = loop;
  auto start =
      LinearForm::of(scf::ForOp(primal).getLowerBound(), {}, From::Memory);
  if (!start)
    return {};
  auto isShared = [&](Value value) {
    auto form = LinearForm::of(value, {}, From::Memory);
    auto perStep = form ? form->getStep(derived).dividedBy(step) : std::nullopt;
    if (!perStep)
      return false;
    // start + number · step is the index.
    LinearForm rest = *form - start->scaled(*perStep);
    return llvm::none_of(rest.terms, [&](const LinearForm::Term &term) {
      return term.dimension.digit &&
             findUnmentioned(digits, *term.dimension.digit).size() !=
                 digits.size();
    });
  };
  SmallVector<Value> places;
  for (Operation &op : derived.getBody()->without_terminator())
    if (op.getNumResults() == 1 && isShared(op.getResult(0)))
      places.push_back(op.getResult(0));
  return places;
}

FailureOr<std::pair<Value, Value>>
ParallelLoop::invert(OpBuilder &b, const ScalarExpr &digit, Value extent,
                     Value index, Regrid &atZero) const {
  scf::ForOp original = primal;
  // Which iterations run is none of what the loop carries.
  Location loc = withoutVariable(original.getLoc());
  BoundInversion inversion(
      b, loc, digit, castInteger(b, loc, extent, index.getType()), atZero);
  std::optional<int64_t> least = base.getConstant();
  if (!least && base.isNotNegative())
    least = 0;
  BoundInversion::Index known{index, least};
  if (startVaries &&
      failed(inversion.keepStarted(original.getLowerBound(), known)))
    return failure();
  if (failed(inversion.keepUnended(getEnd(original).end, known)))
    return failure();
  std::optional<SmallVector<arith::CmpIOp>> guards = findGuards(primal);
  for (arith::CmpIOp guard : *guards)
    if (failed(inversion.keepWhere(guard)))
      return failure();
  return inversion.getRange();
}
