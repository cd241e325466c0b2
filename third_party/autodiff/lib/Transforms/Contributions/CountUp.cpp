//===- CountUp.cpp - Loops that go down go up -----------------------------===//
//
// A kernel may go through memory backwards, from the diagonal to the first key,
// for example:
//
//   for (i = 0; i < n; ++i) { j = n − 1 − i; … }
//
// Then iteration 0 is at another place in each program. Loops of the backward
// that only sum may run in any order, and the order of the forward's iterations
// does not matter for its loads. So both loops use i for j.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/LinearForm.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/Slice.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_COUNTUP
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A loop whose iterations are to run the other way.
class TurnedLoop {
public:
  explicit TurnedLoop(scf::ForOp loop) : loop(loop) {
    collect(loop.getInductionVar());
  }
  /// What was the last iteration is the first one. Numbers that fell from one
  /// iteration to the next rise, from what they were in the last one.
  void turn();

private:
  std::optional<int64_t> findSlope(Value number) const;
  void collect(Value number);
  SmallVector<Value, 2> getLastIndices(OpBuilder &b) const;

  scf::ForOp loop;
  /// Those that fall, and how they change with the induction variable.
  llvm::MapVector<Value, int64_t> falling;
};

struct CountUp : autodiff::impl::CountUpBase<CountUp> {
  void transform() override;
};
} // namespace

/// By how much a number grows with the induction variable, if that is known.
std::optional<int64_t> TurnedLoop::findSlope(Value number) const {
  APInt step;
  if (!matchPattern(scf::ForOp(loop).getStep(), m_ConstantInt(&step)))
    return std::nullopt;
  std::optional<LinearForm> form = LinearForm::of(number);
  std::optional<int64_t> distance =
      form ? form->getStep(loop).getConstant() : std::nullopt;
  if (!distance || *distance % step.getSExtValue() != 0)
    return std::nullopt;
  return *distance / step.getSExtValue();
}

/// Follows the induction variable to where it is used.
void TurnedLoop::collect(Value number) {
  bool isUsed = false;
  for (Operation *user : number.getUsers()) {
    bool isNumber =
        isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(user) &&
        llvm::all_of(user->getOperands(), [&](Value operand) {
          return operand == number || loop.isDefinedOutsideOfLoop(operand);
        });
    if (isNumber)
      collect(user->getResult(0));
    isUsed |= !isNumber;
  }
  std::optional<int64_t> slope = isUsed ? findSlope(number) : std::nullopt;
  if (slope && *slope < 0)
    falling[number] = *slope;
}

/// The induction variable in the last iteration, as two expressions; anything
/// where there is none. They are equal in every loop that runs, but a kernel
/// may start from either, and then only that one cancels.
SmallVector<Value, 2> TurnedLoop::getLastIndices(OpBuilder &b) const {
  scf::ForOp counted = loop;
  Location loc = counted.getLoc();
  Value lower = counted.getLowerBound(), upper = getEnd(counted).end;
  Value step = counted.getStep();
  if (auto atLeast = upper.getDefiningOp<arith::MaxSIOp>();
      atLeast && atLeast.getRhs() == lower)
    upper = atLeast.getLhs();
  Value one =
      arith::ConstantOp::create(b, loc, b.getIntegerAttr(upper.getType(), 1));
  auto minusOne = [&](Value number) -> Value {
    if (mutation::isMade("count-up:one behind the last iteration"))
      return number;
    return arith::SubIOp::create(b, loc, number, one);
  };
  if (matchPattern(step, m_One()))
    return {minusOne(upper)};
  auto indexOf = [&](Value number) -> Value {
    Value distance = arith::MulIOp::create(b, loc, number, step);
    return arith::AddIOp::create(b, loc, lower, distance);
  };
  Value span = arith::SubIOp::create(b, loc, upper, lower);
  Value before = arith::DivSIOp::create(b, loc, minusOne(span), step);
  Value rounded = arith::AddIOp::create(
      b, loc, span, arith::SubIOp::create(b, loc, step, one));
  Value count = arith::DivSIOp::create(b, loc, rounded, step);
  return {indexOf(before), indexOf(minusOne(count))};
}

/// That of equal numbers which is the simplest sum.
static Value shortest(ArrayRef<Value> equal) {
  auto lengthOf = [](Value number) {
    std::optional<LinearForm> form = LinearForm::of(number);
    return form ? form->terms.size() + !form->constant.getConstant() : ~0u;
  };
  return *llvm::min_element(
      equal, [&](Value a, Value b) { return lengthOf(a) < lengthOf(b); });
}

void TurnedLoop::turn() {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  auto ask = [&](Value each) {
    Operation *op = each.getDefiningOp();
    return op && loop->isProperAncestor(op) ? Elsewhere::Computed
                                            : Elsewhere::Known;
  };
  SmallVector<std::pair<Value, Value>> turned;
  Value induction = loop.getInductionVar(), lower = loop.getLowerBound();
  SmallVector<Value, 2> lasts = getLastIndices(b);
  b.setInsertionPointToStart(loop.getBody());
  Value passed = arith::SubIOp::create(b, loc, induction, lower);
  Value index = arith::SubIOp::create(b, loc, lasts.front(), passed);
  for (auto &[number, slope] : falling) {
    b.setInsertionPoint(loop);
    SmallVector<Value, 2> least;
    for (Value last : lasts) {
      IRMapping map;
      map.map(induction, last);
      least.push_back(recompute(b, number, map, ask));
    }
    b.setInsertionPointAfter(index.getDefiningOp());
    Value rise = arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(passed.getType(), -slope));
    rise = arith::MulIOp::create(b, loc, passed, rise);
    turned.emplace_back(number,
                        arith::AddIOp::create(b, loc, shortest(least), rise));
  }
  for (auto [number, rising] : turned)
    number.replaceAllUsesWith(rising);
  induction.replaceUsesWithIf(index, [&](OpOperand &use) {
    return use.getOwner() != passed.getDefiningOp();
  });
}

/// Whether addresses rise (1) or fall (−1) from one iteration to the next; 0 if
/// they stay, or if nobody knows.
static int directionOf(const ReasonOr<LinearForm> &address, Operation *loop) {
  if (!address)
    return 0;
  ScalarExpr step = address->getStep(loop);
  int64_t factor = step.getConstant().value_or(step.asMultiple().second);
  return (factor > 0) - (factor < 0);
}

void CountUp::transform() {
  struct Uses {
    llvm::SetVector<Operation *> loops;
    llvm::SmallSet<int, 3> directions;
  };
  auto &all = getAnalysis<Contributions>();
  llvm::MapVector<Operation *, Uses> derived;
  for (triton::FuncOp backward : getBackwards(getOperation()))
    for (auto &[argument, use] : all.in(backward))
      for (Contribution op : use.contributions)
        if (scf::ForOp primal = op.getPrimalLoop()) {
          Uses &uses = derived[primal];
          uses.loops.insert(op->getParentOp());
          uses.directions.insert(
              directionOf(LinearForm::of(op.getLoad().getPtr()), primal));
        }
  for (auto &[primal, uses] : derived) {
    bool falls = uses.directions.contains(-1) && !uses.directions.contains(1);
    if (!falls || cast<scf::ForOp>(primal).getUnsignedCmp() ||
        !llvm::all_of(uses.loops, [](Operation *loop) {
          return loop->hasAttr(kParallelAttr);
        }))
      continue;
    TurnedLoop(cast<scf::ForOp>(primal)).turn();
    for (Operation *loop : uses.loops)
      TurnedLoop(cast<scf::ForOp>(loop)).turn();
  }
}
