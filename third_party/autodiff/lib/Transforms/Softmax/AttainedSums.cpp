//===- AttainedSums.cpp - Sums that are at least one ----------------------===//
#include "AttainedSums.h"

#include "Maxima.h"
#include "autodiff/Analysis/Moves.h"
#include "autodiff/Analysis/Sign.h"
#include "autodiff/Builders/Combiner.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Looks through casts and selections whose condition is known.
static Value peel(Value value, ScalingDegrees &degrees) {
  while (Operation *op = value.getDefiningOp()) {
    auto select = dyn_cast<arith::SelectOp>(op);
    std::optional<bool> choice =
        select ? degrees.decide(select.getCondition()) : std::nullopt;
    if (choice)
      value = *choice ? select.getTrueValue() : select.getFalseValue();
    else if (isa<arith::ExtFOp, ResidualOp>(op))
      value = op->getOperand(0);
    else
      return value;
  }
  return value;
}

/// The value without an axis along which it is constant.
static Value peelRepeated(Value value, std::optional<unsigned> axis,
                          ScalingDegrees &degrees) {
  value = peel(value, degrees);
  std::optional<Repeated> repeated = matchRepeated(value);
  if (!axis || !repeated || repeated->axis != *axis)
    return value;
  return peel(repeated->source, degrees);
}

/// The scalar that a tile is a splat of.
static Value getSplat(Value tile) {
  auto splat = tile.getDefiningOp<triton::SplatOp>();
  return splat ? splat.getSrc() : tile;
}

/// Whether two tiles, maybe of different shapes, are splats of the same number.
static bool areSame(Value a, Value b) {
  APFloat x(0.0), y(0.0);
  if (matchPattern(a, m_ConstantFloat(&x)) &&
      matchPattern(b, m_ConstantFloat(&y)))
    return x.bitwiseIsEqual(y);
  return getSplat(a) == getSplat(b) &&
         !isa<RankedTensorType>(getSplat(a).getType());
}

/// Whether `value` is one of the values of `tile` along an axis, or without an
/// axis, the tile itself; both may have the same factor.
static bool isAmong(Value value, Value tile, std::optional<unsigned> axis,
                    ScalingDegrees &degrees) {
  value = peel(value, degrees);
  tile = peel(tile, degrees);
  if (!axis && value == tile)
    return true;
  if (auto reduce = value.getDefiningOp<triton::ReduceOp>())
    return axis == reduce.getAxis() && isMaximum(value) &&
           peel(reduce.getSrcs()[0], degrees) == tile;
  auto scaled = value.getDefiningOp<arith::MulFOp>();
  auto all = tile.getDefiningOp<arith::MulFOp>();
  return scaled && all && areSame(scaled.getRhs(), all.getRhs()) &&
         isAmong(scaled.getLhs(), all.getLhs(), axis, degrees);
}

/// The difference x − m in an exponential e^(c(x−m)).
static arith::SubFOp getDifference(Value exponential, ScalingDegrees &degrees) {
  Operation *op = peel(exponential, degrees).getDefiningOp();
  if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(op))
    return nullptr;
  Value exponent = peel(op->getOperand(0), degrees);
  APFloat factor(0.0);
  if (auto product = exponent.getDefiningOp<arith::MulFOp>())
    if (matchPattern(product.getRhs(), m_ConstantFloat(&factor)))
      exponent = peel(product.getLhs(), degrees);
  return exponent.getDefiningOp<arith::SubFOp>();
}

bool mlir::autodiff::isAttained(Value sum, Value m, Value maximum,
                                ScalingDegrees &degrees) {
  Value terms = peel(sum, degrees);
  std::optional<unsigned> axis;
  if (auto reduce = terms.getDefiningOp<triton::ReduceOp>()) {
    if (reduce.getSrcs().size() != 1 ||
        classifyCombiner(reduce.getCombineOp()) != Combiner::Sum)
      return false;
    axis = reduce.getAxis();
    terms = reduce.getSrcs()[0];
  }
  arith::SubFOp difference = getDifference(terms, degrees);
  return difference &&
         peelRepeated(difference.getRhs(), axis, degrees) == peel(m, degrees) &&
         isAmong(maximum, difference.getLhs(), axis, degrees);
}

bool mlir::autodiff::staysAttained(const RescaledLoop &found, unsigned index) {
  ScalingDegrees degrees;
  for (Value value : {found.getCurrent(), found.next})
    degrees.seed(value, Degree().with(Degree::Special::Finite));
  scf::ForOp loop = found.loop;
  Value sum = loop.getRegionIterArg(index);
  auto isKept = [&](Value value) {
    auto product = peel(value, degrees).getDefiningOp<arith::MulFOp>();
    if (!product || !llvm::is_contained(product->getOperands(), sum))
      return false;
    Value scale = product.getLhs() == sum ? product.getRhs() : product.getLhs();
    arith::SubFOp difference = getDifference(scale, degrees);
    return difference &&
           peel(difference.getLhs(), degrees) == found.getCurrent() &&
           peel(difference.getRhs(), degrees) == found.next;
  };
  auto isAdded = [&](Value value) {
    return llvm::any_of(found.update->getOperands(), [&](Value maximum) {
      return maximum != found.getCurrent() &&
             isAttained(value, found.next, maximum, degrees);
    });
  };
  // The old sum is only scaled down by a larger maximum of terms.
  bool isRunning =
      llvm::is_contained(found.update->getOperands(), found.getCurrent());
  auto add = peel(loop.getYieldedValues()[index], degrees)
                 .getDefiningOp<arith::AddFOp>();
  if (!add || !isRunning ||
      Signs().of(loop.getInitArgs()[index]) == Sign::Unknown)
    return false;
  return (isKept(add.getLhs()) && isAdded(add.getRhs())) ||
         (isKept(add.getRhs()) && isAdded(add.getLhs()));
}
