//===- BoundLoops.cpp - Iterations that do nothing are left out -----------===//
//
// Kernels skip what a causal mask or a window excludes by a branch around the
// whole body of a loop:
//
//   for (j = 0; j < n; ++j) if (j <= p) { … }
//
// If the condition compares the iteration's number with a loop-invariant, it is
// moved to the bounds:
//
//   for (j = 0; j < min(n, p + 1); ++j) { … }
//
// Later passes understand bounds: those that split loops at masks, and that
// interchange loops and grid. No new overflows are possible.
//
//===----------------------------------------------------------------------===//
#include "Branches.h"
#include "autodiff/Analysis/IterationRange.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Leaves.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_BOUNDLOOPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using From = ScalarExpr::From;

namespace {
/// A loop whose iterations do nothing unless a condition holds.
class SkippingLoop {
public:
  static std::optional<SkippingLoop> match(scf::ForOp loop);
  /// Moves comparisons of the condition to the loop's bounds; returns whether
  /// there were any.
  bool bound();

private:
  SkippingLoop(scf::ForOp loop, scf::IfOp branch, int64_t step)
      : loop(loop), branch(branch), step(step), b(loop), loc(loop.getLoc()),
        type(loop.getInductionVar().getType()), i64(b.getI64Type()) {}

  SmallVector<Value> takeConditions();
  bool bound(arith::CmpIOp condition);
  bool boundNear(const IterationRange &margin);
  bool boundFar(const IterationRange &margin);
  bool canWiden(const IterationRange &margin) const;
  Value divide(IterationRange sum, int64_t divisor, int64_t rounding);
  void end(Value bound, bool isExtreme);
  void start(Value bound, bool isExtreme);
  bool canStartLater();
  Value shift(Value scalar, int64_t by);
  bool mayBeExtreme(Value scalar) const;
  bool isOnGrid(Value value) const;

  template <typename OpT> Value make(Value x, Value y) {
    return OpT::create(b, loc, x, y);
  }
  Value constant(int64_t number, Type type) {
    return integerOf(b, loc, type, number);
  }

  scf::ForOp loop;
  scf::IfOp branch;
  int64_t step;
  OpBuilder b; // in front of the loop
  Location loc;
  Type type, i64;
};

struct BoundLoops : autodiff::impl::BoundLoopsBase<BoundLoops> {
  void transform() override;
};
} // namespace

//===----------------------------------------------------------------------===//
// What is skipped
//===----------------------------------------------------------------------===//

/// The operation that adds the same to a carried value in each iteration, if
/// the result is not used after the loop; else null.
static Operation *findCounting(scf::ForOp loop, unsigned index) {
  Operation *update = loop.getYieldedValues()[index].getDefiningOp();
  bool counts = isa_and_present<arith::AddIOp, triton::AddPtrOp>(update) &&
                update->getOperand(0) == loop.getRegionIterArg(index) &&
                loop.isDefinedOutsideOfLoop(update->getOperand(1)) &&
                loop.getResult(index).use_empty();
  return counts ? update : nullptr;
}

/// Whether iterations in which the branch does nothing have no effect.
static bool isSkipped(scf::ForOp loop, scf::IfOp branch) {
  Block *work = findWork(branch);
  if (!work)
    return false;
  for (Operation &op : loop.getBody()->without_terminator())
    if (&op != branch && mayWrite(&op))
      return false;
  Block *idle =
      work == branch.thenBlock() ? branch.elseBlock() : branch.thenBlock();
  for (auto [index, next] : llvm::enumerate(loop.getYieldedValues())) {
    Value carried = loop.getRegionIterArg(index);
    if (next == carried || findCounting(loop, index))
      continue;
    if (next.getDefiningOp() != branch)
      return false;
    unsigned result = cast<OpResult>(next).getResultNumber();
    if (idle->getTerminator()->getOperand(result) != carried)
      return false;
  }
  return true;
}

std::optional<SkippingLoop> SkippingLoop::match(scf::ForOp loop) {
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (loop.getUnsignedCmp() || loop.getInductionVar().getType().isIndex() ||
      !step || *step <= 0)
    return std::nullopt;
  for (scf::IfOp branch : loop.getOps<scf::IfOp>())
    if (isSkipped(loop, branch))
      return SkippingLoop(loop, branch, *step);
  return std::nullopt;
}

/// All conditions that have to be true for the branch to do something.
SmallVector<Value> SkippingLoop::takeConditions() {
  SmallVector<Value> conditions;
  if (findWork(branch) == branch.thenBlock()) {
    collectLeaves<arith::AndIOp>(branch.getCondition(), conditions);
  } else if (auto compare =
                 branch.getCondition().getDefiningOp<arith::CmpIOp>()) {
    OpBuilder inside(branch);
    conditions.push_back(
        arith::CmpIOp::create(inside, compare.getLoc(),
                              arith::invertPredicate(compare.getPredicate()),
                              compare.getLhs(), compare.getRhs()));
  }
  return conditions;
}

bool SkippingLoop::bound() {
  SmallVector<Value> left;
  bool isBounded = false;
  for (Value condition : takeConditions()) {
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    if (compare && bound(compare))
      isBounded = true;
    else
      left.push_back(condition);
  }
  if (!isBounded)
    return false;
  OpBuilder inside(branch);
  Value all = integerOf(inside, loc, inside.getI1Type(), 1);
  for (Value condition : left)
    all = arith::AndIOp::create(inside, loc, all, condition);
  if (findWork(branch) == branch.elseBlock())
    all = negationOf(inside, loc, all);
  branch.getConditionMutable().assign(all);
  return true;
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

bool SkippingLoop::bound(arith::CmpIOp condition) {
  std::optional<IterationRange> margin =
      IterationRange::marginOf(condition, loop);
  if (!margin || margin->factor == 0 || margin->low != margin->high ||
      (margin->factor > 0 && !canStartLater()))
    return false;
  // With integers: ⌊(f·i + f·s + n) / f⌋ = i + s + ⌊n / f⌋.
  int64_t factor = std::abs(margin->factor);
  if (llvm::all_of(margin->scalars, [&](const auto &term) {
        return term.second % factor == 0;
      })) {
    for (auto &[scalar, coefficient] : margin->scalars)
      coefficient /= factor;
    margin->low = margin->high = llvm::divideFloorSigned(margin->low, factor);
    margin->factor /= factor;
  }
  return boundNear(*margin) || boundFar(*margin);
}

/// Whether an integer may be the largest one, which means no limit. An argument
/// may be, but not a value computed from a program id.
bool SkippingLoop::mayBeExtreme(Value scalar) const {
  std::optional<ScalarExpr> known = ScalarExpr::of(scalar);
  return !known || (!known->getConstant() && !known->dependsOnProgramId());
}

/// An integer plus a constant, saturated at the largest integer.
Value SkippingLoop::shift(Value scalar, int64_t by) {
  if (by == 0)
    return scalar;
  if (mayBeExtreme(scalar)) {
    unsigned width = type.getIntOrFloatBitWidth();
    if (by > 0)
      scalar = make<arith::MinSIOp>(
          scalar,
          constant(APInt::getSignedMaxValue(width).getSExtValue() - by, type));
    else
      scalar = make<arith::MaxSIOp>(
          scalar,
          constant(APInt::getSignedMinValue(width).getSExtValue() - by, type));
  }
  return make<arith::AddIOp>(scalar, constant(by, type));
}

/// Bounds the loop by an integer plus a constant: i < s + n or i ≥ s + n.
bool SkippingLoop::boundNear(const IterationRange &margin) {
  bool isEnd = margin.factor == -1;
  int64_t number = isEnd ? margin.low + 1 : -margin.low;
  if (std::abs(margin.factor) != 1 || margin.scalars.size() > 1 ||
      !llvm::isInt<30>(number))
    return false;
  Value scalar = constant(0, type);
  if (!margin.scalars.empty()) {
    int64_t coefficient = margin.scalars.front().second;
    scalar = margin.scalars.front().first;
    if (scalar.getType() != type || coefficient != (isEnd ? 1 : -1))
      return false;
  }
  if (isEnd) {
    end(shift(scalar, number), mayBeExtreme(scalar));
    return true;
  }
  // The loop then starts at the first multiple of the step.
  if (step != 1 && (!isOnGrid(scalar) || !isOnGrid(loop.getLowerBound())))
    return false;
  start(shift(scalar, -llvm::divideFloorSigned(-number, step) * step),
        mayBeExtreme(scalar));
  return true;
}

/// Bounds the loop by any sum, in 64 bits: i < ⌊rest / f⌋ + 1 or i ≥ ⌈−rest /
/// f⌉.
bool SkippingLoop::boundFar(const IterationRange &margin) {
  bool isEnd = margin.factor < 0;
  int64_t factor = std::abs(margin.factor);
  if (!canWiden(margin))
    return false;
  Value bound = divide(isEnd ? margin : margin.scaled(-1), factor,
                       isEnd ? factor : factor - 1);
  if (!isEnd) {
    // In whole steps from the loop's start.
    Value from = widenInteger(b, loc, loop.getLowerBound());
    Value distance = make<arith::SubIOp>(bound, from);
    distance = make<arith::AddIOp>(distance, constant(step - 1, i64));
    Value steps = make<arith::FloorDivSIOp>(distance, constant(step, i64));
    bound = make<arith::AddIOp>(
        from, make<arith::MulIOp>(steps, constant(step, i64)));
  }
  bool isExtreme = llvm::any_of(margin.scalars, [&](const auto &term) {
    return mayBeExtreme(term.first);
  });
  if (isExtreme) {
    bound = make<arith::MaxSIOp>(
        bound, constant(std::numeric_limits<int32_t>::min(), i64));
    bound = make<arith::MinSIOp>(
        bound, constant(std::numeric_limits<int32_t>::max(), i64));
  }
  bound = castInteger(b, loc, bound, type);
  isEnd ? end(bound, isExtreme) : start(bound, isExtreme);
  return true;
}

/// Whether nothing overflows in 64 bits.
bool SkippingLoop::canWiden(const IterationRange &margin) const {
  auto isSmall = [](int64_t number) { return llvm::isInt<28>(number); };
  return type.isInteger(32) && margin.scalars.size() <= 4 &&
         isSmall(margin.factor) && isSmall(margin.low) &&
         llvm::all_of(margin.scalars, [&](const auto &term) {
           return term.first.getType().isInteger(32) && isSmall(term.second);
         });
}

/// ⌊(sum + rounding) / divisor⌋
Value SkippingLoop::divide(IterationRange sum, int64_t divisor,
                           int64_t rounding) {
  sum.low += rounding;
  Value dividend = sum.emitLeast(b, loc);
  if (divisor == 1)
    return dividend;
  Value by = constant(divisor, i64);
  std::optional<ScalarExpr> known = ScalarExpr::of(dividend);
  // A division that truncates is understood better by other passes.
  return known && known->isNotNegative()
             ? make<arith::DivSIOp>(dividend, by)
             : make<arith::FloorDivSIOp>(dividend, by);
}

// The distance of extreme bounds may overflow.

void SkippingLoop::end(Value bound, bool isExtreme) {
  if (isExtreme)
    bound = make<arith::MaxSIOp>(bound, loop.getLowerBound());
  if (mutation::isMade("bound-loops:an iteration more"))
    bound = make<arith::AddIOp>(bound, constant(1, type));
  loop.setUpperBound(make<arith::MinSIOp>(loop.getUpperBound(), bound));
}

/// Whether a value is known to be a multiple of the step.
bool SkippingLoop::isOnGrid(Value value) const {
  auto form = LinearForm::of(value, {}, From::Memory);
  return form && form->isMultipleOf(step);
}

/// Whether no carried value counts iterations that would be left out.
bool SkippingLoop::canStartLater() {
  return llvm::none_of(llvm::seq(loop.getNumResults()), [&](unsigned index) {
    return findCounting(loop, index);
  });
}

void SkippingLoop::start(Value bound, bool isExtreme) {
  if (isExtreme)
    bound = make<arith::MinSIOp>(bound, loop.getUpperBound());
  loop.setLowerBound(make<arith::MaxSIOp>(loop.getLowerBound(), bound));
}

void BoundLoops::transform() {
  triton::FuncOp primal = getPrimal(getOperation());
  bool isBounded = false;
  primal.walk([&](scf::ForOp loop) {
    if (auto skipping = SkippingLoop::match(loop))
      isBounded |= skipping->bound();
  });
  if (!isBounded)
    return;
  // Removes branches that are always taken.
  OpPassManager cleanup(ModuleOp::getOperationName());
  cleanup.nest<triton::FuncOp>().addPass(createCanonicalizerPass());
  if (failed(runPipeline(cleanup, getOperation())))
    signalPassFailure();
}
