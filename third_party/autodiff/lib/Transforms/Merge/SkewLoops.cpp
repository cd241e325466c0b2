//===- SkewLoops.cpp - Each element asks the iterations that reach it -----===//
//
// A loop may go through elements at growing distances from a position:
//
//   for k: … x[t − k] …            (the taps of a convolution)
//
// Contributions to one element of x then come from several positions t, in
// other lanes and programs. Counted by q = t − k in place of t, they do not:
// lane and program are those of q, the loop goes on over k, and t is q + k. So
// the lane of the element takes what its neighbours contribute (Positions.h),
// at an address that does not depend on k any more. That is an alternative to
// the contribution as it was: autodiff-interchange takes it, if it can sum it
// over k and over whatever else shares the element, or erases it.
//
//===----------------------------------------------------------------------===//
#include "Positions.h"
#include "autodiff/Analysis/Constraints.h"
#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Leaves.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SKEWLOOPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("skew-loops");

namespace {
/// A loop on which the position `place` of elements depends: they are
/// `times` positions further in each iteration.
struct Tap {
  scf::ForOp loop;
  size_t place;
  int64_t times;
};

/// The elements along one position: q = position + Σ times · number + shift, of
/// which no q is negative, and each is below `end` (none: below all positions).
struct Line {
  int64_t shift = 0;
  std::optional<ScalarExpr> end;
};

/// A contribution in loops of which some are taps.
struct Skewed {
  Contribution op;
  SmallVector<Tap> taps;
  Positions positions;
  SmallVector<Line> lines;
  /// The address's steps along the taps, in elements.
  SmallVector<ScalarExpr> steps;

  static ReasonOr<Skewed> match(Contribution op);

private:
  Obstacle findLine(size_t place);
};

struct SkewLoops : autodiff::impl::SkewLoopsBase<SkewLoops> {
  using SkewLoopsBase::SkewLoopsBase;

  void transform() override;
  Obstacle skew(Contribution op);

  /// What the backward stores to.
  SmallVector<Value> written;
};
} // namespace

/// The tap that a step along a loop amounts to; none if iterations do not go
/// through the same positions.
static std::optional<Tap> findTap(scf::ForOp loop, const ScalarExpr &step,
                                  const Positions &positions) {
  auto [unit, factor] = step.asMultiple();
  for (auto [place, position] : llvm::enumerate(positions.get())) {
    auto [stride, length] = position.stride.asMultiple();
    if (!(unit == stride) || length <= 0 || factor % length != 0)
      continue;
    int64_t times = factor / length;
    bool overlaps = position.digit || std::abs(times) < position.length;
    if (times != 0 && overlaps)
      return Tap{loop, place, times};
  }
  return std::nullopt;
}

/// How far elements along a position go, by the mask.
Obstacle Skewed::findLine(size_t place) {
  LinearForm reach;
  const Position &position = positions[place];
  if (position.axis)
    reach.terms.push_back(
        {{Dimension::Kind::Axis, *position.axis}, ScalarExpr::constant(1)});
  if (position.digit) {
    Dimension program{Dimension::Kind::Program};
    program.digit = position.digit;
    reach.terms.push_back({program, ScalarExpr::constant(position.length)});
  }
  LinearForm own = reach;
  bool rises = true;
  for (const Tap &tap : taps) {
    if (tap.place != place)
      continue;
    Dimension iteration{Dimension::Kind::Loop};
    iteration.loop = tap.loop;
    reach.terms.push_back({iteration, ScalarExpr::constant(tap.times)});
    rises &= tap.times > 0;
  }
  auto isSame = [](const LinearForm &a, const LinearForm &b) {
    return (a - b).isConstant();
  };
  LinearForm below = reach.scaled(ScalarExpr::constant(-1));
  bool falls = llvm::all_of(taps, [&](const Tap &tap) {
    return tap.place != place || tap.times < 0;
  });
  std::optional<int64_t> least;
  std::optional<ScalarExpr> end;
  for (const Constraint &constraint :
       knownConstraintsOf(AccumulateOp(op).getMask())) {
    std::optional<int64_t> bound = constraint.bound.getConstant();
    if (isSame(constraint.form, below) && bound)
      least = std::max(least.value_or(1 - *bound), 1 - *bound);
    bool isEnd = isSame(constraint.form, reach) ||
                 (falls && isSame(constraint.form, own));
    if (isEnd && !constraint.bound.dependsOnProgramId())
      end = end ? ScalarExpr::binary(ScalarExpr::Kind::Min, *end,
                                     constraint.bound)
                : constraint.bound;
  }
  if (!least && rises)
    least = 0;
  if (!least)
    return because(AccumulateOp(op),
                   "its mask does not leave out what lies in front of the "
                   "first element");
  lines[place].shift = -*least;
  if (!end && (!falls || *least != 0))
    return because(AccumulateOp(op),
                   "its mask does not say where the elements end");
  if (end)
    lines[place].end = *end - ScalarExpr::constant(*least);
  return std::nullopt;
}

ReasonOr<Skewed> Skewed::match(Contribution op) {
  std::optional<LoopNest> nest = op.getNest();
  if (!nest || nest->empty())
    return because(op, "it is not in loops alone that run in any order");
  ReasonOr<LinearForm> form = op.getForm();
  if (!form)
    return form.why();
  LinearForm fixed = *form;
  llvm::erase_if(fixed.terms, [](const LinearForm::Term &term) {
    return term.dimension.kind == Dimension::Kind::Loop;
  });
  std::optional<Positions> positions =
      Positions::of(fixed, shapeOf(AccumulateOp(op).getPtr().getType()));
  if (!positions)
    return because(op, "its address is not made of programs, lanes and "
                       "iterations alone");
  Skewed found{op, {}, *positions, {}, {}};
  found.lines.resize(positions->size());
  for (scf::ForOp loop : *nest) {
    ScalarExpr step = form->getStep(loop);
    if (std::optional<Tap> tap = findTap(loop, step, *positions)) {
      found.taps.push_back(*tap);
      found.steps.push_back(step);
    }
  }
  if (found.taps.empty())
    return because(op, "no loop goes through the positions of other lanes or "
                       "programs");
  for (size_t place : llvm::seq(positions->size()))
    if (llvm::any_of(found.taps,
                     [&](const Tap &tap) { return tap.place == place; }))
      if (Obstacle why = found.findLine(place))
        return *why;
  return found;
}

//===----------------------------------------------------------------------===//
// The element's own lane
//===----------------------------------------------------------------------===//

/// Conditions whose conjunction a mask is, each for all lanes.
static void collectConditions(OpBuilder &b, Value mask,
                              SmallVectorImpl<Value> &conditions) {
  SmallVector<Value> leaves;
  collectLeaves<arith::AndIOp>(mask, leaves);
  for (Value leaf : leaves) {
    Operation *move = leaf.getDefiningOp();
    if (!move || !triton::AxisMap::ofMove(move)) {
      conditions.push_back(leaf);
      continue;
    }
    SmallVector<Value> inner;
    collectConditions(b, move->getOperand(0), inner);
    for (Value each : inner) {
      Operation *moved = b.clone(*move);
      moved->setOperand(0, each);
      conditions.push_back(moved->getResult(0));
    }
  }
}

namespace {
/// Emits, beside a contribution, what its lane takes from its neighbours.
class ElementLane {
public:
  ElementLane(const Skewed &skewed, ArrayRef<Value> written)
      : skewed(skewed), op(skewed.op), loc(op.getLoc()), b(op),
        written(written) {}

  /// What the neighbour contributes; zero if there is none. Null if it cannot
  /// be computed.
  Value takeValue();
  /// Where the element is: the same in all iterations of the taps.
  Value getPointer();
  /// All lanes that may have an element; null if all have.
  Value getMask();
  /// How many loads a neighbour takes.
  unsigned countLoads() const { return loads; }

private:
  Value numberOf(const Tap &tap, Type type);

  const Skewed &skewed;
  AccumulateOp op;
  Location loc;
  OpBuilder b;
  ArrayRef<Value> written;
  unsigned loads = 0;
};
} // namespace

/// The number of a tap's iteration.
Value ElementLane::numberOf(const Tap &tap, Type type) {
  return castInteger(b, loc, scf::ForOp(tap.loop).getInductionVar(), type);
}

Value ElementLane::takeValue() {
  Distance distance;
  MovingDistance moving(skewed.positions.size());
  for (const Line &line : skewed.lines)
    distance.push_back(-line.shift);
  Type i32 = b.getI32Type();
  for (const Tap &tap : skewed.taps) {
    Value far = arith::MulIOp::create(b, loc, numberOf(tap, i32),
                                      integerOf(b, loc, i32, -tap.times));
    Value &all = moving[tap.place];
    all = all ? Value(arith::AddIOp::create(b, loc, all, far)) : far;
  }
  Neighbors neighbors(b, skewed.positions, distance, written, moving);
  Value value = neighbors.get(op.getValue());
  Value taken = op.getMask() ? neighbors.get(op.getMask()) : Value();
  loads = neighbors.countLoads();
  if (!value || (op.getMask() && !taken))
    return {};
  if (Value exists = neighbors.exists(op.getValue()))
    taken =
        taken ? Value(arith::AndIOp::create(b, loc, exists, taken)) : exists;
  if (!taken || mutation::isMade("skew:neighbours that there are not"))
    return value;
  return arith::SelectOp::create(b, loc, taken, value,
                                 constantOf(b, loc, value.getType(), 0.0));
}

Value ElementLane::getPointer() {
  auto function = op->getParentOfType<triton::FuncOp>();
  Type i64 = b.getI64Type();
  Value back;
  auto add = [&](const ScalarExpr &step, Value times) {
    Value far = step.emit(b, loc, function.getArguments());
    if (times)
      far = arith::MulIOp::create(b, loc, times, far);
    back = back ? Value(arith::AddIOp::create(b, loc, back, far)) : far;
  };
  ScalarExpr none = ScalarExpr::constant(0);
  for (auto [tap, step] : llvm::zip_equal(skewed.taps, skewed.steps))
    add(none - step, numberOf(tap, i64));
  for (auto [position, line] :
       llvm::zip_equal(skewed.positions.get(), skewed.lines))
    if (line.shift != 0)
      add(position.stride * ScalarExpr::constant(-line.shift), {});
  Type type = op.getPtr().getType();
  back = splatTo(b, loc, back, withElementType(type, i64));
  return triton::AddPtrOp::create(b, loc, type, op.getPtr(), back);
}

/// What the mask says of anything but the positions that taps move along; of
/// these, what is below the end.
Value ElementLane::getMask() {
  SmallVector<Value> conditions;
  if (op.getMask())
    collectConditions(b, op.getMask(), conditions);
  llvm::erase_if(conditions, [&](Value condition) {
    Constraints constraints = constraintsOf(condition);
    return !constraints ||
           llvm::any_of(*constraints, [&](const Constraint &each) {
             return llvm::any_of(skewed.taps, [&](const Tap &tap) {
               const Position &position = skewed.positions[tap.place];
               auto along = position.coefficientIn(each.form, position.axis);
               return each.form.getStep(tap.loop).getConstant() != 0 ||
                      !along || along->getConstant() != 0;
             });
           });
  });
  for (auto [place, line] : llvm::enumerate(skewed.lines))
    if (line.end)
      conditions.push_back(skewed.positions.emitBelow(b, loc, place, *line.end,
                                                      op.getPtr().getType()));
  Value mask;
  for (Value condition : conditions)
    mask = mask ? Value(arith::AndIOp::create(b, loc, mask, condition))
                : condition;
  return mask;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// What has to hold for indices of 32 bits, and for there to be as many
/// positions as elements; none if a launch does not know.
static std::optional<SmallVector<Attribute>> findLimits(const Skewed &skewed) {
  MLIRContext *context = AccumulateOp(skewed.op).getContext();
  SmallVector<ExprAttr> reach;
  SmallVector<Attribute> limits;
  for (auto [place, line] : llvm::enumerate(skewed.lines)) {
    reach.push_back(skewed.positions[place].count(context));
    if (line.end)
      limits.push_back(
          LimitAttr::get(context, line.end->get(context), reach.back()));
  }
  for (const Tap &tap : skewed.taps) {
    std::optional<ScalarExpr> trips = findTripCount(tap.loop);
    if (!trips || trips->dependsOnProgramId())
      return std::nullopt;
    reach[tap.place] = addOf(reach[tap.place],
                             mulOf(trips->get(context), std::abs(tap.times)));
  }
  for (ExprAttr far : reach)
    limits.push_back(
        LimitAttr::get(context, far, ExprAttr::get(context, kMostIndex)));
  return limits;
}

Obstacle SkewLoops::skew(Contribution op) {
  ReasonOr<Skewed> skewed = Skewed::match(op);
  if (!skewed)
    return skewed.why();
  auto limits = findLimits(*skewed);
  if (!limits)
    return because(op, "a launch does not know how often the loop at {0} runs",
                   skewed->taps.front().loop);
  ElementLane lane(*skewed, written);
  Value value = lane.takeValue();
  if (!value)
    return because(op, "what neighbours contribute cannot be computed here: it "
                       "is not made lane by lane of what is loaded");
  if (!always && lane.countLoads() > Target::kLoadsOfAtomic)
    return because(op, "each neighbour takes {0} loads, more than {1}",
                   lane.countLoads(), Target::kLoadsOfAtomic);
  Value pointer = lane.getPointer();
  ReasonOr<LinearForm> address = LinearForm::of(pointer);
  bool isFixed = address && llvm::all_of(skewed->taps, [&](const Tap &tap) {
                   return address->getStep(tap.loop).getConstant() == 0;
                 });
  if (!isFixed)
    return because(op, "its address is not made of programs, lanes and "
                       "iterations alone");
  OpBuilder b(op);
  auto moved =
      AccumulateOp::create(b, op.getLoc(), pointer, value, lane.getMask(),
                           op.getArgument(), op.getSite());
  moved.setMovedAttr(ArrayAttr::get(&getContext(), *limits));
  return std::nullopt;
}

void SkewLoops::transform() {
  auto &all = getAnalysis<Contributions>();
  for (triton::FuncOp backward : getUnscheduled(getOperation())) {
    written = getWrittenPointers(backward);
    for (auto &[argument, use] : all.ownedBy(backward)) {
      if (use.contributions.size() != 1 || !use.upstreams.empty() ||
          llvm::is_contained(atomic, argument))
        continue;
      Contribution op = use.contributions.front();
      if (op.isOuter() || op.getRemainder() || op.findOwner())
        continue;
      if (Obstacle why = skew(op))
        kRemarks.missed(op, *why);
    }
  }
}
