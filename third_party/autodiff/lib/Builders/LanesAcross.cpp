//===- LanesAcross.cpp - Conditions on lanes, without one axis ------------===//
//
// Whether a condition holds for some lane x along an axis. Comparisons of a
// position with a value that is the same in all of these lanes are bounds of x,
//
//     p + x ≤ u    and    l ≤ q + x,    0 ≤ x < extent,
//
// and some x fulfils them if every lower bound is at most every upper one
// (Fourier and Motzkin; this is exact, since the coefficients of x are one).
// For other conditions, the lanes where they hold are counted.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Builders/LanesAcross.h"

#include "autodiff/Analysis/LaneSteps.h"
#include "autodiff/Builders/Combiner.h"
#include "autodiff/Builders/FirstLane.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// position + x ≤ limit + slack, or if `isLower`, limit ≤ position + x + slack.
/// Position and limit lack the axis.
struct Bound {
  bool isLower;
  Value position, limit;
  int64_t slack;
};

/// The conditions of a conjunction, sorted by whether they vary along an axis.
class Conjunction {
public:
  Conjunction(OpBuilder &b, Location loc, Value condition, unsigned axis,
              SmallVectorImpl<ScalarExpr> *assumed = nullptr)
      : b(b), loc(loc), type(cast<RankedTensorType>(condition.getType())),
        axis(axis), extent(type.getDimSize(axis)), assumed(assumed) {
    collect(condition);
  }

  /// Emits whether it holds for some lane along the axis.
  Value eliminate();
  /// Whether the lanes where it holds are the first ones (or the last ones).
  bool holdsFirst(bool last) const;

private:
  void collect(Value condition);
  bool addBounds(Value condition);
  void require(Value holds);
  void requireOrder(Value low, Value high, int64_t slack);
  void requireOrder(const Bound &lower, const Bound &upper);

  OpBuilder &b;
  Location loc;
  RankedTensorType type;
  unsigned axis;
  int64_t extent;
  SmallVectorImpl<ScalarExpr> *assumed;
  SmallVector<Bound> bounds;
  /// The conditions that vary along the axis, and whether all are bounds.
  SmallVector<Value> varying;
  bool isBounded = true;
  /// The conjunction of the others, without the axis; null if there are none.
  Value required;
};
} // namespace

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Whether both are results of the same computation.
static bool isSame(Value a, Value b) {
  if (a == b)
    return true;
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  return x && y &&
         cast<OpResult>(a).getResultNumber() ==
             cast<OpResult>(b).getResultNumber() &&
         x->getNumRegions() == 0 && isMemoryEffectFree(x) &&
         OperationEquivalence::isEquivalentTo(
             x, y, [](Value v, Value w) { return success(isSame(v, w)); },
             /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
}

/// The operation that computes a tile before broadcasts and expand_dims.
static Operation *findCore(Value tile) {
  Operation *op = tile.getDefiningOp();
  while (triton::isRepetition(op) &&
         isa<RankedTensorType>(op->getOperand(0).getType()))
    op = op->getOperand(0).getDefiningOp();
  return op;
}

/// Broadcasts an operand of `core` like `tile`, which is computed by `core`.
static Value liftOperand(OpBuilder &b, Value tile, Value operand,
                         Operation *core) {
  Operation *op = tile.getDefiningOp();
  if (op == core)
    return operand;
  IRMapping map;
  map.map(op->getOperand(0), liftOperand(b, op->getOperand(0), operand, core));
  Operation *lifted = b.clone(*op, map);
  dropHints(lifted);
  Value result = lifted->getResult(0);
  result.setType(
      withElementType(result.getType(), getElementTypeOrSelf(operand)));
  return result;
}

void Conjunction::collect(Value condition) {
  Operation *core = findCore(condition);
  if (isa_and_nonnull<arith::AndIOp>(core)) {
    for (Value part : core->getOperands())
      collect(liftOperand(b, condition, part, core));
    return;
  }
  if (isUniformAlong(condition, axis))
    if (Value first = getFirstLane(b, condition, axis))
      return require(first);
  varying.push_back(condition);
  isBounded &= addBounds(condition);
}

/// Whether `condition` compares a position along the axis with a value that is
/// the same in all lanes there; adds it as a bound.
bool Conjunction::addBounds(Value condition) {
  auto comparison = dyn_cast_or_null<arith::CmpIOp>(findCore(condition));
  if (!comparison)
    return false;
  using arith::CmpIPredicate;
  CmpIPredicate predicate = comparison.getPredicate();
  Value low = liftOperand(b, condition, comparison.getLhs(), comparison);
  Value high = liftOperand(b, condition, comparison.getRhs(), comparison);
  bool isStrict =
      predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sgt;
  bool isEqual = predicate == CmpIPredicate::eq;
  if (predicate == CmpIPredicate::sgt || predicate == CmpIPredicate::sge)
    std::swap(low, high);
  else if (!isStrict && !isEqual && predicate != CmpIPredicate::sle)
    return false;
  auto stepOf = [&](Value value) {
    return findLaneStep(value, axis).value_or(-1);
  };
  int64_t ofLow = stepOf(low), ofHigh = stepOf(high);
  if (ofLow + ofHigh != 1 || ofLow * ofHigh != 0)
    return false;
  Value firstOfLow = getFirstLane(b, low, axis);
  Value firstOfHigh = getFirstLane(b, high, axis);
  if (!firstOfLow || !firstOfHigh)
    return false;
  Bound bound{ofHigh == 1, ofHigh == 1 ? firstOfHigh : firstOfLow,
              ofHigh == 1 ? firstOfLow : firstOfHigh, isStrict ? -1 : 0};
  bounds.push_back(bound);
  if (isEqual) {
    bound.isLower = !bound.isLower;
    bounds.push_back(bound);
  }
  return true;
}

bool Conjunction::holdsFirst(bool last) const {
  return isBounded && llvm::all_of(bounds, [&](const Bound &bound) {
           return bound.isLower == last;
         });
}

//===----------------------------------------------------------------------===//
// Elimination
//===----------------------------------------------------------------------===//

void Conjunction::require(Value holds) {
  required = bothHold(b, loc, required, holds);
}

/// The expression of a number that a launch knows and that is the same in all
/// programs.
static std::optional<ScalarExpr> findOfLaunch(Value value) {
  DenseIntElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)) && constant.isSplat())
    return ScalarExpr::constant(constant.getSplatValue<APInt>().getSExtValue());
  if (auto splat = value.getDefiningOp<triton::SplatOp>())
    return findOfLaunch(splat.getSrc());
  std::optional<ScalarExpr> number = ScalarExpr::of(value);
  return number && !number->dependsOnProgramId() ? number : std::nullopt;
}

/// Requires low ≤ high + slack. If a launch knows both, it is assumed: the
/// launch has a live lane.
void Conjunction::requireOrder(Value low, Value high, int64_t slack) {
  std::optional<ScalarExpr> least = findOfLaunch(low);
  std::optional<ScalarExpr> most = findOfLaunch(high);
  if (least && most) {
    ScalarExpr left = *most + ScalarExpr::constant(slack) - *least;
    if (left.isNotNegative())
      return;
    if (assumed && !left.readsMemory() && !left.getConstant())
      return addAssumption(*assumed, left);
  }
  auto predicate = arith::CmpIPredicate::sle;
  if (slack == -1)
    predicate = arith::CmpIPredicate::slt;
  else if (slack != 0)
    high = addInteger(Tile(b, loc, high), slack);
  require(arith::CmpIOp::create(b, loc, predicate, low, high));
}

void Conjunction::requireOrder(const Bound &lower, const Bound &upper) {
  int64_t slack = lower.slack + upper.slack;
  if (isSame(lower.position, upper.position))
    return requireOrder(lower.limit, upper.limit, slack);
  // Sums of two positions may need 64 bits.
  auto sum = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, loc, castInteger(b, loc, x, b.getI64Type()),
                                 castInteger(b, loc, y, b.getI64Type()));
  };
  requireOrder(sum(lower.limit, upper.position),
               sum(upper.limit, lower.position), slack);
}

/// Whether `condition` holds for some lane along `axis`, by counting.
static Value count(OpBuilder &b, Location loc, Value condition, unsigned axis) {
  auto type = cast<RankedTensorType>(condition.getType());
  // Along other axes where all lanes are the same, one of them is enough.
  for (unsigned other = 0; other < type.getRank(); ++other) {
    if (other == axis || !isUniformAlong(condition, other))
      continue;
    Value first = getFirstLane(b, condition, other);
    if (!first)
      continue;
    Value found = count(b, loc, first, axis - (other < axis));
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + axis);
    return repeatAlong(b, loc, found, other - (other > axis),
                       type.clone(shape));
  }
  Tile one(b, loc, constantOf(b, loc, type.clone(b.getF32Type()), 1.0));
  Tile sum(b, loc,
           sumOver(b, loc, where(condition, one, one.constant(0.0)), axis));
  return compare(arith::CmpFPredicate::OGT, sum, sum.constant(0.0));
}

Value Conjunction::eliminate() {
  if (!isBounded) {
    Value all = varying.front();
    for (Value condition : ArrayRef(varying).drop_front())
      all = arith::AndIOp::create(b, loc, all, condition);
    require(count(b, loc, all, axis));
    return required;
  }
  for (const Bound &bound : bounds)
    if (bound.isLower)
      requireOrder(bound.limit, bound.position, bound.slack + extent - 1);
    else
      requireOrder(bound.position, bound.limit, bound.slack);
  for (const Bound &lower : bounds)
    for (const Bound &upper : bounds)
      if (lower.isLower && !upper.isLower)
        requireOrder(lower, upper);
  return required;
}

//===----------------------------------------------------------------------===//
// Use
//===----------------------------------------------------------------------===//

Value mlir::autodiff::findLiveAcross(OpBuilder &b, Location loc, Value live,
                                     unsigned axis,
                                     SmallVectorImpl<ScalarExpr> *assumed) {
  return Conjunction(b, loc, live, axis, assumed).eliminate();
}

Value mlir::autodiff::findNonZeroAcross(OpBuilder &b, Location loc,
                                        Value cotangent, unsigned axis) {
  Tile tile(b, loc, cotangent);
  Value isNonZero =
      compare(arith::CmpFPredicate::UNE, tile, tile.constant(0.0));
  return count(b, loc, isNonZero, axis);
}

Value mlir::autodiff::findLiveFrom(OpBuilder &b, Location loc, Value live,
                                   unsigned axis, bool before) {
  if (Conjunction(b, loc, live, axis).holdsFirst(/*last=*/before))
    return live;
  Type integers = withElementType(live.getType(), b.getI32Type());
  Value numbers = arith::ExtUIOp::create(b, loc, integers, live);
  auto join = [&](OpBuilder &, ValueRange running, ValueRange next) {
    return SmallVector<Value>{
        arith::OrIOp::create(b, loc, running[0], next[0])};
  };
  Value found = scanWith(b, loc, numbers, axis, /*reverse=*/!before, join)[0];
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, found,
                               integerOf(b, loc, integers, 0));
}
