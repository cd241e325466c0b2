//===- WeightedMeans.cpp - Sums divided by their weights ------------------===//
#include "autodiff/Analysis/WeightedMeans.h"

#include "autodiff/Analysis/Moves.h"
#include "autodiff/Analysis/Sign.h"
#include "autodiff/Analysis/StoredCopies.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::autodiff;

/// The axis of a tile along which its weight is repeated; none if the weight is
/// a tile of the same shape.
using MaybeAxis = std::optional<unsigned>;

namespace {
/// Proves |sum| ≤ M · weight, element by element, where M is a number that the
/// type has.
class Means {
public:
  explicit Means(Type element) : element(element) {}

  bool isMean(Value value);

private:
  struct Pair {
    Value sum, weight;
    MaybeAxis axis;

    bool operator==(const Pair &other) const {
      return sum == other.sum && weight == other.weight && axis == other.axis;
    }
  };

  bool isBounded(Pair pair);
  bool isBoundedByChoice(Pair pair);
  bool isCarried(Pair pair);
  bool isChosen(Pair pair);
  bool isScaled(Pair pair);
  bool hasTerms(Pair pair);
  bool isTermOf(Value term, Value weight, MaybeAxis axis);
  bool isNumberTimes(Value product, Value weight, MaybeAxis axis);
  bool isSumOfNumbersTimes(Operation *sum, Value weight, MaybeAxis axis);
  bool isOfProduct(triton::DotOp dot, Value weight, MaybeAxis axis);
  bool isNotNegative(Value value) {
    return signs.of(value) != Sign::Unknown ||
           mutation::isMade("means:weights of any sign");
  }

  Type element;
  Signs signs;
  /// What carried values are taken to be at the start of an iteration.
  SmallVector<Pair> assumed;
  /// Whether there is a sum of several numbers.
  bool isSum = false;
  /// How many more pairs are looked at: there may be any number of paths.
  unsigned budget = 512;
};
} // namespace

//===----------------------------------------------------------------------===//
// Forms of values
//===----------------------------------------------------------------------===//

/// The value without marks and conversions.
static Value strip(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ResidualOp, arith::ExtFOp, arith::TruncFOp, triton::FpToFpOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The value that `tile` has in each lane, and along which axis it is repeated.
static std::pair<Value, MaybeAxis> matchWeight(Value tile) {
  tile = strip(tile);
  if (std::optional<Repeated> repeated = matchRepeated(tile))
    return {strip(repeated->source), repeated->axis};
  return {tile, std::nullopt};
}

/// What a reduction adds up, and along which axis; null if `op` is none.
static triton::ReduceOp matchSum(Operation *op) {
  auto reduce = dyn_cast_or_null<triton::ReduceOp>(op);
  return reduce && isa_and_present<arith::AddFOp>(reduce.getSingleCombiner())
             ? reduce
             : nullptr;
}

/// The sum of `weight` along `axis`, or itself without one.
static bool isSumOf(Value sum, Value weight, unsigned axis) {
  triton::ReduceOp reduce = matchSum(sum.getDefiningOp());
  return reduce && reduce.getAxis() == axis &&
         strip(reduce.getSrcs()[0]) == strip(weight);
}

/// The terms of a sum. A matrix product is one without what it is added to,
/// which is `split` off.
static void collectTerms(Value value, SmallVectorImpl<Value> &terms,
                         bool split) {
  value = strip(value);
  if (auto add = value.getDefiningOp<arith::AddFOp>()) {
    collectTerms(add.getLhs(), terms, split);
    collectTerms(add.getRhs(), terms, split);
    return;
  }
  terms.push_back(value);
  if (auto dot = value.getDefiningOp<triton::DotOp>(); dot && split)
    collectTerms(dot.getC(), terms, split);
}

static bool isZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat());
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

/// v · w, where v is a number of the type.
bool Means::isNumberTimes(Value product, Value weight, MaybeAxis axis) {
  auto multiply = strip(product).getDefiningOp<arith::MulFOp>();
  if (!multiply || !isNotNegative(weight))
    return false;
  for (unsigned side : {0, 1}) {
    auto [factor, along] = matchWeight(multiply->getOperand(side));
    if (factor == weight && along == axis &&
        isExactIn(multiply->getOperand(1 - side), element))
      return true;
  }
  return false;
}

/// The sum of v · w along an axis, beside that of w.
bool Means::isSumOfNumbersTimes(Operation *op, Value weight, MaybeAxis axis) {
  triton::ReduceOp sum = matchSum(op),
                   ofWeights = matchSum(weight.getDefiningOp());
  if (!sum || !ofWeights)
    return false;
  unsigned along = sum.getAxis(), ofWeight = ofWeights.getAxis();
  Value weights = strip(ofWeights.getSrcs()[0]);
  if (!axis)
    return along == ofWeight &&
           isNumberTimes(sum.getSrcs()[0], weights, std::nullopt);
  // The axis, and the one of the sum, as they are in the product.
  unsigned repeated = *axis + (along <= *axis ? 1 : 0);
  return along == ofWeight + (repeated <= ofWeight ? 1 : 0) &&
         isNumberTimes(sum.getSrcs()[0], weights, repeated);
}

/// A matrix product with the weights on one side.
bool Means::isOfProduct(triton::DotOp dot, Value weight, MaybeAxis axis) {
  unsigned rank = cast<RankedTensorType>(dot.getType()).getRank();
  auto areWeights = [&](Value weights, Value values, unsigned repeated,
                        unsigned contracted) {
    return axis == repeated && isSumOf(weight, weights, contracted) &&
           isNotNegative(weights) && isExactIn(values, element);
  };
  bool isRight = areWeights(dot.getA(), dot.getB(), rank - 1, rank - 1) ||
                 areWeights(dot.getB(), dot.getA(), rank - 2, rank - 2);
  isSum |= isRight;
  return isRight;
}

/// Whether |term| ≤ M · weight, by what they are.
bool Means::isTermOf(Value term, Value weight, MaybeAxis axis) {
  Operation *op = term.getDefiningOp();
  if (auto dot = dyn_cast_or_null<triton::DotOp>(op))
    return isOfProduct(dot, weight, axis);
  // One number of a sum of numbers, as in a softmax.
  bool isOneOf = axis && isSumOf(weight, term, *axis) && isNotNegative(term);
  if (isOneOf || isSumOfNumbersTimes(op, weight, axis))
    return isSum = true;
  return isNumberTimes(term, weight, axis);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Each term of the sum belongs to another one of the weight.
bool Means::hasTerms(Pair pair) {
  SmallVector<Value> terms, weights;
  collectTerms(pair.sum, terms, /*split=*/true);
  collectTerms(pair.weight, weights, /*split=*/false);
  bool isOneTerm = terms.size() == 1 && weights.size() == 1;
  for (Value term : terms) {
    if (isZero(term))
      continue;
    bool mayBeSum = !isOneTerm && !term.getDefiningOp<triton::DotOp>();
    auto *found = llvm::find_if(weights, [&](Value weight) {
      return isTermOf(term, weight, pair.axis) ||
             (mayBeSum && isBounded({term, weight, pair.axis}));
    });
    if (found == weights.end())
      return false;
    weights.erase(found);
  }
  return llvm::all_of(weights,
                      [&](Value weight) { return isNotNegative(weight); });
}

/// Both are scaled by a number that is not negative.
bool Means::isScaled(Pair pair) {
  auto sum = pair.sum.getDefiningOp<arith::MulFOp>();
  auto weight = pair.weight.getDefiningOp<arith::MulFOp>();
  if (!sum || !weight)
    return false;
  for (unsigned side : {0, 1})
    for (unsigned other : {0, 1}) {
      auto [scale, along] = matchWeight(sum->getOperand(side));
      if (along == pair.axis && scale == strip(weight->getOperand(other)) &&
          isNotNegative(scale) &&
          isBounded({sum->getOperand(1 - side), weight->getOperand(1 - other),
                     pair.axis}))
        return true;
    }
  return false;
}

/// Both are results of one loop, or of one branch.
bool Means::isCarried(Pair pair) {
  auto sum = dyn_cast<OpResult>(pair.sum),
       weight = dyn_cast<OpResult>(pair.weight);
  if (!sum || !weight || sum.getOwner() != weight.getOwner())
    return false;
  unsigned a = sum.getResultNumber(), b = weight.getResultNumber();
  if (auto branch = dyn_cast<scf::IfOp>(sum.getOwner()))
    return llvm::all_of(
        ArrayRef{branch.thenYield(), branch.elseYield()},
        [&](scf::YieldOp end) {
          return isBounded({end.getOperand(a), end.getOperand(b), pair.axis});
        });
  auto loop = dyn_cast<scf::ForOp>(sum.getOwner());
  if (!loop ||
      !isBounded({loop.getInitArgs()[a], loop.getInitArgs()[b], pair.axis}))
    return false;
  assumed.push_back(
      {loop.getRegionIterArg(a), loop.getRegionIterArg(b), pair.axis});
  bool isKept = isBounded(
      {loop.getYieldedValues()[a], loop.getYieldedValues()[b], pair.axis});
  assumed.pop_back();
  isSum |= isKept;
  return isKept;
}

/// Whether `condition` is weight == 0.
static bool isWithoutWeight(Value condition, Value weight) {
  auto test = condition.getDefiningOp<arith::CmpFOp>();
  return test && test.getPredicate() == arith::CmpFPredicate::OEQ &&
         strip(test.getLhs()) == strip(weight) && isZero(test.getRhs());
}

/// One of them is a selection. Without weight, the sum is zero: then the weight
/// may be replaced by any number.
bool Means::isChosen(Pair pair) {
  if (auto select = pair.sum.getDefiningOp<arith::SelectOp>())
    return isBounded({select.getTrueValue(), pair.weight, pair.axis}) &&
           isBounded({select.getFalseValue(), pair.weight, pair.axis});
  auto select = pair.weight.getDefiningOp<arith::SelectOp>();
  if (!select)
    return false;
  Value other = select.getFalseValue();
  bool isReplaced = isWithoutWeight(select.getCondition(), other) &&
                    isNotNegative(select.getTrueValue());
  return isBounded({pair.sum, other, pair.axis}) &&
         (isReplaced ||
          isBounded({pair.sum, select.getTrueValue(), pair.axis}));
}

bool Means::isBounded(Pair pair) {
  if (budget == 0)
    return false;
  --budget;
  pair = {strip(pair.sum), strip(pair.weight), pair.axis};
  return (isZero(pair.sum) && isNotNegative(pair.weight)) ||
         llvm::is_contained(assumed, pair) || isCarried(pair) ||
         isScaled(pair) || isChosen(pair) || hasTerms(pair);
}

/// The divisor of a quotient, or of a product with a reciprocal; null if
/// `value` is neither. The other operand is `dividend`.
static Value findDivisor(Value value, Value &dividend, MaybeAxis &axis) {
  Operation *op = value.getDefiningOp();
  if (isa_and_present<arith::DivFOp, triton::PreciseDivFOp>(op)) {
    auto [divisor, along] = matchWeight(op->getOperand(1));
    dividend = op->getOperand(0);
    axis = along;
    return divisor;
  }
  if (!isa_and_present<arith::MulFOp>(op))
    return {};
  for (unsigned side : {0, 1}) {
    auto [factor, along] = matchWeight(op->getOperand(side));
    Operation *inverse = factor.getDefiningOp();
    if (!isa_and_present<arith::DivFOp, triton::PreciseDivFOp>(inverse) ||
        !matchPattern(inverse->getOperand(0), m_OneFloat()))
      continue;
    dividend = op->getOperand(1 - side);
    axis = along;
    return strip(inverse->getOperand(1));
  }
  return {};
}

bool Means::isMean(Value value) {
  value = strip(value);
  if (isZero(value))
    return true;
  if (auto select = value.getDefiningOp<arith::SelectOp>())
    return isMean(select.getTrueValue()) && isMean(select.getFalseValue());
  Value dividend;
  MaybeAxis axis;
  Value divisor = findDivisor(value, dividend, axis);
  return divisor && isBounded({dividend, divisor, axis}) && isSum;
}

bool mlir::autodiff::isMeanOf(Value value, Type element) {
  return Means(element).isMean(value);
}
