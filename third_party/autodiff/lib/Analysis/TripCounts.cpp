//===- TripCounts.cpp - How often loops and their bodies run --------------===//
#include "autodiff/Analysis/TripCounts.h"

#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Dialect/Expr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::dependsOnCounters(ExprAttr expression) {
  llvm::DenseSet<int64_t> counters;
  expression.collectCounters(counters);
  return !counters.empty();
}

LoopEnd mlir::autodiff::getEnd(scf::ForOp loop) {
  auto select = loop.getUpperBound().getDefiningOp<arith::SelectOp>();
  if (select && select.getFalseValue() == loop.getLowerBound())
    return {select.getTrueValue(), select.getCondition()};
  return {loop.getUpperBound(), Value()};
}

/// The most iterations for given program ids. Where bounds depend on outer
/// loops, these are at their first or last iteration.
static std::optional<ScalarExpr> mostIterationsPerProgram(scf::ForOp loop) {
  std::optional<LinearForm> lower = LinearForm::of(loop.getLowerBound());
  std::optional<LinearForm> upper = LinearForm::of(getEnd(loop).end);
  std::optional<ScalarExpr> step = ScalarExpr::of(loop.getStep());
  if (loop.getUnsignedCmp() || !lower || !upper || !step)
    return std::nullopt;
  LinearForm form = *upper - *lower;
  ScalarExpr span = form.constant;
  for (const LinearForm::Term &term : form.terms) {
    if (term.dimension.kind == Dimension::Kind::Program) {
      span = span + *term.dimension.digit * term.coefficient;
      continue;
    }
    std::optional<int64_t> slope = term.coefficient.getConstant();
    if (term.dimension.kind != Dimension::Kind::Loop || !slope)
      return std::nullopt;
    if (*slope < 0)
      continue;
    std::optional<ScalarExpr> outer =
        mostIterationsPerProgram(cast<scf::ForOp>(term.dimension.loop));
    if (!outer)
      return std::nullopt;
    span = span + (*outer - ScalarExpr::constant(1)) * term.coefficient;
  }
  return tripCount(ScalarExpr::constant(0), span, *step);
}

ExprAttr mlir::autodiff::mostIterations(Operation *loop) {
  MLIRContext *context = loop->getContext();
  if (auto counted = dyn_cast<scf::ForOp>(loop))
    if (std::optional<ScalarExpr> count = mostIterationsPerProgram(counted))
      return mostOfPrograms(context, *count);
  if (auto counter = loop->getAttrOfType<IntegerAttr>(kCounterAttr))
    return ExprAttr::get(context, ExprKind::Counted, counter.getInt());
  return {};
}

std::optional<ScalarExpr> mlir::autodiff::findTripCount(scf::ForOp loop) {
  LoopEnd end = getEnd(loop);
  auto lower = ScalarExpr::of(loop.getLowerBound());
  auto upper = ScalarExpr::of(end.end), step = ScalarExpr::of(loop.getStep());
  if (loop.getUnsignedCmp() || end.condition || !lower || !upper || !step)
    return std::nullopt;
  return tripCount(*lower, *upper, *step);
}

ExprAttr mlir::autodiff::mostExecutions(Operation *op) {
  ExprAttr product;
  for (Operation *loop = op->getParentOp(); loop; loop = loop->getParentOp()) {
    if (!isa<LoopLikeOpInterface>(loop))
      continue;
    ExprAttr count = mostIterations(loop);
    if (!count)
      return {};
    product = product ? mulOf(count, product) : count;
  }
  return product ? product : ExprAttr::get(op->getContext(), 1);
}

Value mlir::autodiff::iterationNumber(OpBuilder &b, Location loc,
                                      Operation *op) {
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return loop.getAfterArguments()[*findCounter(loop)];
  auto loop = cast<scf::ForOp>(op);
  Value distance = arith::SubIOp::create(b, loc, loop.getInductionVar(),
                                         loop.getLowerBound());
  return arith::DivUIOp::create(b, loc, distance, loop.getStep());
}

/// No intermediate result overflows: a difference of bounds fits into the
/// unsigned type of the same width.
Value mlir::autodiff::countIterations(OpBuilder &b, Location loc, Value lower,
                                      Value upper, Value step,
                                      bool isUnsigned) {
  Type type = lower.getType();
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  };
  Value span = arith::SubIOp::create(b, loc, upper, lower);
  if (!isUnsigned) {
    span = arith::MaxSIOp::create(b, loc, span, integer(0));
    if (matchPattern(step, m_One()))
      return span;
    Value last = arith::SubIOp::create(b, loc, step, integer(1));
    Value rounded = arith::AddIOp::create(b, loc, span, last);
    return arith::DivUIOp::create(b, loc, rounded, step);
  }
  Value isRange =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, upper, lower);
  Value most = arith::SubIOp::create(b, loc, span, integer(1));
  Value count = arith::AddIOp::create(
      b, loc, arith::DivUIOp::create(b, loc, most, step), integer(1));
  return arith::SelectOp::create(b, loc, isRange, count, integer(0));
}

std::optional<unsigned> mlir::autodiff::findCounter(scf::WhileOp loop) {
  for (auto [index, passed] :
       llvm::enumerate(loop.getConditionOp().getArgs())) {
    auto argument = dyn_cast<BlockArgument>(passed);
    if (!argument || argument.getOwner() != loop.getBeforeBody())
      continue;
    unsigned carried = argument.getArgNumber();
    auto next = loop.getYieldedValues()[carried].getDefiningOp<arith::AddIOp>();
    if (next && next.getLhs() == loop.getAfterArguments()[index] &&
        matchPattern(next.getRhs(), m_One()) &&
        matchPattern(loop.getInits()[carried], m_Zero()))
      return index;
  }
  return std::nullopt;
}
