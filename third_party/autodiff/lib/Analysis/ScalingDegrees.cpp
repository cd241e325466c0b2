//===- ScalingDegrees.cpp - What a shift of some values does --------------===//
#include "autodiff/Analysis/ScalingDegrees.h"

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;
using MaybeDegree = std::optional<Degree>;
using Vector = Degree::Vector;

//===----------------------------------------------------------------------===//
// Degrees
//===----------------------------------------------------------------------===//

// Degrees are small sums of 1s and ln 2s.
static bool close(double a, double b) { return std::abs(a - b) < 1e-9; }
static bool isZero(const Vector &v) { return close(v[0], 0) && close(v[1], 0); }
bool mlir::autodiff::equal(const Vector &a, const Vector &b) {
  return close(a[0], b[0]) && close(a[1], b[1]);
}
static Vector times(const Vector &v, double factor) {
  return {v[0] * factor, v[1] * factor};
}
static Vector plus(const Vector &a, const Vector &b, double sign = 1) {
  return {a[0] + sign * b[0], a[1] + sign * b[1]};
}

Degree Degree::shifted(Vector shift, ArrayRef<unsigned> axes) {
  Degree degree;
  degree.shift = shift;
  degree.axes.assign(axes.begin(), axes.end());
  return degree;
}
Degree Degree::scaled(Vector scale, ArrayRef<unsigned> axes) {
  Degree degree;
  degree.scale = scale;
  degree.axes.assign(axes.begin(), axes.end());
  return degree;
}
Degree Degree::with(Special kind) const {
  Degree degree = *this;
  degree.special = kind;
  return degree;
}
Degree Degree::at(ArrayRef<unsigned> axes) const {
  Degree degree = *this;
  degree.isLocal = true;
  degree.axes.assign(axes.begin(), axes.end());
  return degree;
}
bool Degree::isShift() const { return isZero(scale); }
bool Degree::isScale() const { return isZero(shift); }

using Special = Degree::Special;
static bool isZeroValue(const Degree &d) { return d.is(Special::Zero); }
static bool isNegativeInfinity(const Degree &d) {
  return d.is(Special::NegativeInfinity);
}
static bool isFinite(const Degree &d) {
  return d.is(Special::Finite) || d.is(Special::Zero) ||
         d.is(Special::AtLeastOne);
}

/// `result`, computed from both, with the axes of either; none if these differ.
static MaybeDegree join(const Degree &a, const Degree &b, Degree result) {
  if (!a.isInvariant() && !b.isInvariant() && a.axes != b.axes)
    return std::nullopt;
  result.axes = a.isInvariant() ? b.axes : a.axes;
  result.isLocal = a.isLocal || b.isLocal;
  return result;
}

/// The degree of values that must have equal degrees: the terms of a sum, the
/// sides of a select.
static MaybeDegree agree(const Degree &a, const Degree &b) {
  if (a.special == b.special && a.special != Special::None &&
      (isZeroValue(a) || isNegativeInfinity(a)))
    return join(a, b, a);
  if (isZeroValue(a) && b.isScale() && !isNegativeInfinity(b))
    return join(a, b, b.with(Special::None));
  if (isZeroValue(b) && a.isScale() && !isNegativeInfinity(a))
    return join(a, b, a.with(Special::None));
  if (isNegativeInfinity(a) && b.isShift())
    return join(a, b, b.with(Special::None));
  if (isNegativeInfinity(b) && a.isShift())
    return join(a, b, a.with(Special::None));
  if (!equal(a.shift, b.shift) || !equal(a.scale, b.scale))
    return std::nullopt;
  return join(a, b, a.special == b.special ? a : a.with(Special::None));
}

static MaybeDegree sum(const Degree &a, const Degree &b, double sign) {
  if (isNegativeInfinity(a) || isNegativeInfinity(b)) {
    // −∞ − (−∞) is not a number, and x − (−∞) is ∞.
    bool isInfinite = sign > 0 || !isNegativeInfinity(b);
    return isInfinite && a.isShift() && b.isShift()
               ? join(a, b, Degree().with(Special::NegativeInfinity))
               : std::nullopt;
  }
  if (!a.isShift() || !b.isShift()) {
    MaybeDegree both = agree(a, b);
    bool isLess = both && sign < 0 && both->is(Special::AtLeastOne);
    return isLess ? both->with(Special::None) : both;
  }
  Degree result = Degree::shifted(plus(a.shift, b.shift, sign), {});
  if (isZeroValue(a) && isZeroValue(b))
    result.special = Special::Zero;
  else if (isFinite(a) && isFinite(b))
    result.special = Special::Finite;
  return join(a, b, result);
}

static MaybeDegree product(const Degree &a, const Degree &b, double sign) {
  if (isNegativeInfinity(a) || isNegativeInfinity(b) || !a.isScale() ||
      !b.isScale())
    return std::nullopt;
  if (isZeroValue(a) || (isZeroValue(b) && sign > 0))
    return join(a, b, Degree().with(Special::Zero));
  return join(a, b, Degree::scaled(plus(a.scale, b.scale, sign), {}));
}

/// A shift multiplied by a constant.
static MaybeDegree multiple(const Degree &x, double factor) {
  if (isNegativeInfinity(x) && !(factor > 0))
    return std::nullopt;
  Degree result = x;
  result.shift = times(x.shift, factor);
  return x.is(Special::AtLeastOne) ? result.with(Special::Finite) : result;
}

static MaybeDegree exponential(const Degree &x, double factor) {
  if (!x.isShift())
    return std::nullopt;
  Degree result = x;
  result.shift = {0, 0};
  result.scale = times(x.shift, factor);
  return result.with(isNegativeInfinity(x) ? Special::Zero : Special::None);
}

static MaybeDegree logarithm(const Degree &x, double factor) {
  if (!x.isScale())
    return std::nullopt;
  Degree result = x;
  result.scale = {0, 0};
  result.shift = times(x.scale, factor);
  return result.with(isZeroValue(x) ? Special::NegativeInfinity
                                    : Special::None);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static std::optional<double> getUniformConstant(Value value) {
  FloatAttr number;
  if (matchPattern(value, m_Constant(&number)))
    return number.getValueAsDouble();
  DenseFPElementsAttr tile;
  if (matchPattern(value, m_Constant(&tile)) && tile.isSplat()) {
    APFloat splat = tile.getSplatValue<APFloat>();
    bool lossy;
    splat.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    return splat.convertToDouble();
  }
  if (auto splat = value.getDefiningOp<triton::SplatOp>())
    return getUniformConstant(splat.getSrc());
  return std::nullopt;
}

static bool isLessThanOne(Value value) {
  std::optional<double> number = getUniformConstant(value);
  return number && *number < 1;
}

/// Turns the degree of an operand into that of the result. With `orNext`, axes
/// that the result lacks become the one behind its last; otherwise there is no
/// degree if an axis gets lost.
static MaybeDegree moveAxes(Degree degree, const triton::AxisMap &map,
                            bool orNext = false) {
  if (degree.isInvariant())
    return degree;
  for (unsigned &axis : degree.axes) {
    std::optional<unsigned> moved = map.toResult(axis);
    if (!moved && !orNext)
      return std::nullopt;
    axis = moved.value_or(map.getResultRank());
  }
  return degree;
}

static MaybeDegree ofReduce(triton::ReduceOp op, const Degree &x) {
  Region &region = op.getCombineOp();
  Block &body = region.front();
  if (op.getSrcs().size() != 1 || body.getOperations().size() != 2)
    return std::nullopt;
  bool isSum = isa<arith::AddFOp>(body.front());
  bool isExtremum = isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
                        arith::MinNumFOp>(body.front());
  if (!(isSum && x.isScale()) && !isExtremum)
    return std::nullopt;
  return moveAxes(x, op.getAxisMap(0));
}

static MaybeDegree ofDot(triton::DotOp op, const Degree &a, const Degree &b,
                         const Degree &c) {
  unsigned rank = cast<RankedTensorType>(op.getType()).getRank();
  // Rows depend on A, columns on B, and batches on both. Along the summed axis,
  // which is one more axis here, the degrees of both have to cancel.
  MaybeDegree rows = moveAxes(a, op.getAxisMap(0), /*orNext=*/true);
  MaybeDegree columns = moveAxes(b, op.getAxisMap(1), /*orNext=*/true);
  MaybeDegree ab = product(*rows, *columns, 1);
  if (!ab || (!ab->isInvariant() && llvm::is_contained(ab->axes, rank)))
    return std::nullopt;
  return ab->isScale() && c.isScale() ? agree(*ab, c) : std::nullopt;
}

/// Two numbers in the same order as these values, if that is known.
static std::optional<std::pair<double, double>>
getOrder(const Degree &a, Value x, const Degree &b, Value y) {
  if ((isNegativeInfinity(a) && isNegativeInfinity(b)) ||
      (isZeroValue(a) && isZeroValue(b)))
    return std::pair(0.0, 0.0);
  if ((isFinite(a) && isNegativeInfinity(b)) ||
      (a.is(Special::AtLeastOne) && isLessThanOne(y)))
    return std::pair(1.0, 0.0);
  if ((isNegativeInfinity(a) && isFinite(b)) ||
      (isLessThanOne(x) && b.is(Special::AtLeastOne)))
    return std::pair(0.0, 1.0);
  return std::nullopt;
}

static MaybeDegree ofComparison(arith::CmpFOp op, const Degree &a,
                                const Degree &b) {
  // A comparison does not change if both sides have the same shift. A value
  // with a shift may be −∞, and then it does not move, unless it is known to be
  // finite.
  bool isInfinite = isNegativeInfinity(a) != isNegativeInfinity(b) &&
                    !(a.isInvariant() && b.isInvariant());
  if (!getOrder(a, op.getLhs(), b, op.getRhs()) && (isInfinite || !agree(a, b)))
    return std::nullopt;
  return join(a, b, Degree());
}

/// If the condition is known, only the chosen side counts.
MaybeDegree ScalingDegrees::ofSelect(arith::SelectOp op) {
  MaybeDegree condition = of(op.getCondition());
  if (!condition || !condition->isShift() || !condition->isScale())
    return std::nullopt;
  MaybeDegree chosen;
  if (std::optional<bool> choice = decide(op.getCondition())) {
    chosen = of(*choice ? op.getTrueValue() : op.getFalseValue());
  } else {
    MaybeDegree a = of(op.getTrueValue()), b = of(op.getFalseValue());
    chosen = a && b ? agree(*a, *b) : std::nullopt;
  }
  return chosen ? join(*condition, *chosen, *chosen) : std::nullopt;
}

/// The degree of an elementwise operation on invariant values.
static MaybeDegree ofFixed(Operation *op, ArrayRef<Degree> x) {
  if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumRegions() != 0)
    return std::nullopt;
  MaybeDegree result = Degree();
  for (const Degree &operand : x) {
    if (!result || !operand.isShift() || !operand.isScale())
      return std::nullopt;
    result = join(*result, operand, Degree());
  }
  return result;
}

/// Whether a seed is in a region of `op`, so that results of `op` change.
bool ScalingDegrees::hasSeed(Operation *op) {
  return op->getNumRegions() > 0 && llvm::any_of(seeds, [&](Value seed) {
           return op->isAncestor(seed.getParentBlock()->getParentOp());
         });
}

MaybeDegree ScalingDegrees::ofOperation(Operation *op, unsigned result) {
  if (op->hasAttr(kChangesFrameAttr) || op->hasAttr(kIfRunAttr))
    return of(op->getOperand(1));
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return ofSelect(select);
  SmallVector<Degree> x;
  for (Value operand : op->getOperands()) {
    MaybeDegree degree = of(operand);
    if (!degree)
      return std::nullopt;
    x.push_back(*degree);
  }
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(op->getRegions(), captures);
  bool invariant =
      llvm::all_of(x, [](const Degree &d) { return d.isInvariant(); }) &&
      llvm::all_of(captures, [&](Value v) { return isInvariant(v); }) &&
      !hasSeed(op);
  bool anySpecial =
      llvm::any_of(x, [](const Degree &d) { return !d.is(Special::None); });
  if (invariant && !anySpecial)
    return Degree();

  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (!x[0].isInvariant())
      return std::nullopt;
    MaybeDegree a = of(branch.thenYield().getOperand(result));
    MaybeDegree b = of(branch.elseYield().getOperand(result));
    return a && b ? agree(*a, *b) : std::nullopt;
  }
  if (isa<arith::AddFOp>(op))
    return sum(x[0], x[1], 1);
  if (isa<arith::SubFOp>(op))
    return sum(x[0], x[1], -1);
  if (isa<arith::NegFOp>(op))
    return sum(Degree().with(Special::Zero), x[0], -1);
  if (isa<arith::MulFOp>(op)) {
    for (unsigned i : {0, 1})
      if (std::optional<double> factor =
              getUniformConstant(op->getOperand(1 - i));
          factor && x[i].isShift() && !x[i].isInvariant())
        return multiple(x[i], *factor);
    return product(x[0], x[1], 1);
  }
  if (isa<arith::DivFOp, triton::PreciseDivFOp>(op)) {
    if (std::optional<double> divisor = getUniformConstant(op->getOperand(1));
        divisor && *divisor != 0 && x[0].isShift() && !x[0].isInvariant())
      return multiple(x[0], 1 / *divisor);
    return product(x[0], x[1], -1);
  }
  if (isa<math::ExpOp>(op))
    return exponential(x[0], 1);
  if (isa<math::Exp2Op>(op))
    return exponential(x[0], M_LN2);
  if (isa<math::LogOp>(op))
    return logarithm(x[0], 1);
  if (isa<math::Log2Op>(op))
    return logarithm(x[0], M_LOG2E);
  if (isa<arith::ExtFOp, arith::TruncFOp, ResidualOp>(op))
    return x[0];
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(op))
    for (unsigned i : {0, 1})
      if (x[i].is(Special::AtLeastOne) && isLessThanOne(op->getOperand(1 - i)))
        return x[i];
  if (isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
          arith::MinNumFOp>(op))
    return agree(x[0], x[1]);
  if (isa<arith::CmpFOp>(op))
    return ofComparison(cast<arith::CmpFOp>(op), x[0], x[1]);
  if (auto reduce = dyn_cast<triton::ReduceOp>(op))
    return ofReduce(reduce, x[0]);
  if (auto dot = dyn_cast<triton::DotOp>(op))
    return ofDot(dot, x[0], x[1], x[2]);
  if (auto map = triton::AxisMap::ofMove(op))
    return moveAxes(x[0], *map);
  // A reshape keeps degrees that are uniform over the tile.
  if (isa<triton::ReshapeOp>(op))
    return x[0].isInvariant() || x[0].axes.empty() ? MaybeDegree(x[0])
                                                   : std::nullopt;
  if (invariant)
    return Degree();
  return ofFixed(op, x);
}

/// Sets the degree of a value, except of a seed, which has its own.
void ScalingDegrees::learn(Value value, MaybeDegree degree) {
  if (!llvm::is_contained(seeds, value))
    known[value] = degree;
}

/// Guesses the degree of carried values: that of the initial value, or if that
/// is zero or −∞, that of the next one. Then verifies it.
MaybeDegree ScalingDegrees::ofLoop(Operation *op, unsigned result) {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop || !isInvariant(loop.getLowerBound()) ||
      !isInvariant(loop.getUpperBound()) || !isInvariant(loop.getStep()))
    return std::nullopt;
  SmallVector<MaybeDegree> assumed;
  for (Value init : loop.getInitArgs())
    assumed.push_back(of(init));
  // It may take two rounds to find the degree of what a zero is added to.
  for (unsigned round = 0; round <= loop.getNumResults() + 1; ++round) {
    ScalingDegrees inner = *this;
    for (auto [argument, degree] :
         llvm::zip_equal(loop.getRegionIterArgs(), assumed))
      inner.learn(argument, degree);
    bool stable = true;
    for (auto [yielded, degree] :
         llvm::zip_equal(loop.getYieldedValues(), assumed)) {
      if (!degree)
        continue;
      MaybeDegree next = inner.of(yielded);
      MaybeDegree both = next ? agree(*degree, *next) : std::nullopt;
      bool same = both && equal(both->shift, degree->shift) &&
                  equal(both->scale, degree->scale) &&
                  both->special == degree->special &&
                  both->isLocal == degree->isLocal;
      stable &= same;
      degree = both;
    }
    if (stable) {
      for (auto [argument, value, degree] : llvm::zip_equal(
               loop.getRegionIterArgs(), loop.getResults(), assumed)) {
        learn(argument, degree);
        learn(value, degree);
      }
      return known.lookup(loop.getResult(result));
    }
  }
  return std::nullopt;
}

MaybeDegree ScalingDegrees::compute(Value value) {
  if (std::optional<double> number = getUniformConstant(value)) {
    if (*number == 0)
      return Degree().with(Special::Zero);
    if (std::isinf(*number) && *number < 0)
      return Degree().with(Special::NegativeInfinity);
    return Degree();
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop && argument.getArgNumber() > 0) {
      ofLoop(loop, argument.getArgNumber() - 1);
      auto it = known.find(value);
      return it == known.end() ? std::nullopt : it->second;
    }
    bool known =
        loop || isa<triton::FuncOp>(argument.getOwner()->getParentOp());
    return known ? MaybeDegree(Degree()) : std::nullopt;
  }
  auto result = cast<OpResult>(value);
  if (isa<scf::ForOp>(result.getOwner()))
    return ofLoop(result.getOwner(), result.getResultNumber());
  return ofOperation(result.getOwner(), result.getResultNumber());
}

MaybeDegree ScalingDegrees::of(Value value) {
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  MaybeDegree degree = compute(value);
  known[value] = degree;
  return degree;
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

/// The conjunction or disjunction of two conditions; either alone decides if it
/// is `unless`.
static std::optional<bool> both(std::optional<bool> a, std::optional<bool> b,
                                bool unless) {
  if (a == unless || b == unless)
    return unless;
  return a && b ? a : std::nullopt;
}

std::optional<bool> ScalingDegrees::decide(Value condition) {
  Operation *op = condition.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (triton::isMove(op))
    return decide(op->getOperand(0));
  if (isa<arith::AndIOp, arith::OrIOp>(op))
    return both(decide(op->getOperand(0)), decide(op->getOperand(1)),
                /*unless=*/isa<arith::OrIOp>(op));
  if (isa<arith::XOrIOp>(op) && matchPattern(op->getOperand(1), m_One())) {
    std::optional<bool> holds = decide(op->getOperand(0));
    return holds ? std::optional(!*holds) : std::nullopt;
  }
  auto compare = dyn_cast<arith::CmpFOp>(op);
  MaybeDegree a = compare ? of(compare.getLhs()) : std::nullopt;
  MaybeDegree b = compare ? of(compare.getRhs()) : std::nullopt;
  if (!a || !b)
    return std::nullopt;
  auto order = getOrder(*a, compare.getLhs(), *b, compare.getRhs());
  if (!order)
    return std::nullopt;
  return arith::applyCmpPredicate(compare.getPredicate(), APFloat(order->first),
                                  APFloat(order->second));
}

bool ScalingDegrees::hasInvariantEffects(Operation *root, bool orLocal) {
  auto isFixed = [&](Value value) {
    MaybeDegree degree = of(value);
    return degree && degree->isShift() && degree->isScale() &&
           (orLocal || !degree->isLocal);
  };
  WalkResult walk = root->walk([&](Operation *op) {
    bool decides = isa<scf::IfOp, scf::WhileOp>(op);
    bool writes = op->getNumRegions() == 0 && !isMemoryEffectFree(op) &&
                  !isa<triton::LoadOp>(op);
    if (!decides && !writes)
      return WalkResult::advance();
    for (Value operand : op->getOperands())
      if (!isFixed(operand))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return !walk.wasInterrupted();
}
