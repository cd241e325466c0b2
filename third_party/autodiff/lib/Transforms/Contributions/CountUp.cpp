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

namespace mlir::autodiff {
#define GEN_PASS_DEF_COUNTUP
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A loop that goes backwards: all numbers that it uses decrease from one
/// iteration to the next.
class FallingLoop {
public:
  static std::optional<FallingLoop> match(scf::ForOp loop);
  /// Lets the numbers rise, from what they are in the last iteration.
  void turn();

private:
  explicit FallingLoop(scf::ForOp loop) : loop(loop) {}

  std::optional<int64_t> findSlope(Value number) const;
  bool collect(Value number);
  Value getLastIndex(OpBuilder &b) const;

  scf::ForOp loop;
  /// What is used, and how it changes with the induction variable.
  llvm::MapVector<Value, int64_t> numbers;
};

struct CountUp : autodiff::impl::CountUpBase<CountUp> {
  void transform() override;
};
} // namespace

/// By how much a number grows with the induction variable, if that is known.
std::optional<int64_t> FallingLoop::findSlope(Value number) const {
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

/// Follows the induction variable to where it is used, and returns whether what
/// is used falls.
bool FallingLoop::collect(Value number) {
  bool isUsed = false;
  for (Operation *user : number.getUsers()) {
    bool isNumber =
        isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(user) &&
        llvm::all_of(user->getOperands(),
                     [&](Value operand) {
                       return operand == number ||
                              scf::ForOp(loop).isDefinedOutsideOfLoop(operand);
                     }) &&
        findSlope(user->getResult(0));
    if (!isNumber)
      isUsed = true;
    else if (!collect(user->getResult(0)))
      return false;
  }
  if (!isUsed)
    return true;
  std::optional<int64_t> slope = findSlope(number);
  if (!slope || *slope >= 0)
    return false;
  numbers[number] = *slope;
  return true;
}

std::optional<FallingLoop> FallingLoop::match(scf::ForOp loop) {
  FallingLoop found(loop);
  if (loop.getUnsignedCmp() || !found.collect(loop.getInductionVar()) ||
      found.numbers.empty())
    return std::nullopt;
  return found;
}

/// The induction variable in the last iteration; anything where there is none.
Value FallingLoop::getLastIndex(OpBuilder &b) const {
  scf::ForOp counted = loop;
  Location loc = counted.getLoc();
  Value lower = counted.getLowerBound(), upper = getEnd(counted).end;
  Value step = counted.getStep();
  if (auto atLeast = upper.getDefiningOp<arith::MaxSIOp>();
      atLeast && atLeast.getRhs() == lower)
    upper = atLeast.getLhs();
  Value one =
      arith::ConstantOp::create(b, loc, b.getIntegerAttr(upper.getType(), 1));
  Value end = upper;
  if (!mutation::isMade("count-up:one behind the last iteration"))
    end = arith::SubIOp::create(b, loc, upper, one);
  if (matchPattern(step, m_One()))
    return end;
  Value span = arith::SubIOp::create(b, loc, end, lower);
  Value number = arith::DivSIOp::create(b, loc, span, step);
  Value distance = arith::MulIOp::create(b, loc, number, step);
  return arith::AddIOp::create(b, loc, lower, distance);
}

void FallingLoop::turn() {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  auto ask = [&](Value each) {
    Operation *op = each.getDefiningOp();
    return op && loop->isProperAncestor(op) ? Elsewhere::Computed
                                            : Elsewhere::Known;
  };
  SmallVector<std::pair<Value, Value>> turned;
  Value lower = loop.getLowerBound(), last = getLastIndex(b);
  for (auto [number, slope] : numbers) {
    b.setInsertionPoint(loop);
    IRMapping map;
    map.map(loop.getInductionVar(), last);
    Value least = recompute(b, number, map, ask);
    b.setInsertionPointToStart(loop.getBody());
    Value index = arith::SubIOp::create(b, loc, loop.getInductionVar(), lower);
    Value rise = arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(index.getType(), -slope));
    rise = arith::MulIOp::create(b, loc, index, rise);
    turned.emplace_back(number, arith::AddIOp::create(b, loc, least, rise));
  }
  for (auto [number, rising] : turned)
    number.replaceAllUsesWith(rising);
}

void CountUp::transform() {
  auto &all = getAnalysis<Contributions>();
  llvm::MapVector<Operation *, llvm::SetVector<Operation *>> derived;
  for (triton::FuncOp backward : getBackwards(getOperation()))
    for (auto &[argument, use] : all.in(backward))
      for (Contribution op : use.contributions)
        if (scf::ForOp primal = op.getPrimalLoop())
          derived[primal].insert(op->getParentOp());
  for (auto &[primal, loops] : derived) {
    SmallVector<std::optional<FallingLoop>> falling{
        FallingLoop::match(cast<scf::ForOp>(primal))};
    for (Operation *loop : loops)
      falling.push_back(loop->hasAttr(kParallelAttr)
                            ? FallingLoop::match(cast<scf::ForOp>(loop))
                            : std::nullopt);
    if (llvm::all_of(falling, [](const auto &loop) { return !!loop; }))
      for (std::optional<FallingLoop> &loop : falling)
        loop->turn();
  }
}
