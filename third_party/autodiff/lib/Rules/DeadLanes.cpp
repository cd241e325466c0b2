//===- DeadLanes.cpp - Lanes that a mask left out -------------------------===//
#include "autodiff/Rules/DeadLanes.h"

#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/FirstLane.h"
#include "autodiff/Support/Leaves.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

/// How many operations a condition is looked for in, one behind the other.
constexpr unsigned kFarEnough = 12;

static bool isZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat());
}

/// Both conditions, of which either may be null.
static Value both(Tile at, Value a, Value b) {
  if (!a || !b || a == b)
    return a ? a : b;
  return arith::AndIOp::create(at.b(), at.loc(), a, b);
}

/// Whether both are computed alike.
static bool isSame(Value a, Value b) {
  if (a == b)
    return true;
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  return x && y && x->getNumRegions() == 0 && isMemoryEffectFree(x) &&
         cast<OpResult>(a).getResultNumber() ==
             cast<OpResult>(b).getResultNumber() &&
         OperationEquivalence::isEquivalentTo(
             x, y, [](Value v, Value w) { return success(isSame(v, w)); },
             /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
}

/// What both conjunctions have in common; one or the other, if that is nothing.
static Value either(Tile at, Value a, Value b) {
  SmallVector<Value> ofA, ofB;
  collectLeaves<arith::AndIOp>(a, ofA);
  collectLeaves<arith::AndIOp>(b, ofB);
  Value common;
  for (Value condition : ofA)
    if (llvm::any_of(ofB,
                     [&](Value other) { return isSame(condition, other); }))
      common = both(at, common, condition);
  return common ? common : arith::OrIOp::create(at.b(), at.loc(), a, b);
}

/// Whether a tile differs along no other axis than this one.
static bool isUniformBut(Value tile, unsigned axis) {
  unsigned rank = cast<RankedTensorType>(tile.getType()).getRank();
  return llvm::all_of(llvm::seq(rank), [&](unsigned other) {
    return other == axis || isUniformAlong(tile, other);
  });
}

Value mlir::autodiff::findLiveAcross(OpBuilder &b, Location loc, Value live,
                                     unsigned axis) {
  Value found;
  SmallVector<Value> pending{live};
  while (!pending.empty()) {
    Value condition = pending.pop_back_val();
    if (auto parts = condition.getDefiningOp<arith::AndIOp>()) {
      llvm::append_range(pending, llvm::reverse(parts->getOperands()));
      continue;
    }
    if (isUniformAlong(condition, axis)) {
      if (Value first = getFirstLane(b, condition, axis)) {
        found = found ? arith::AndIOp::create(b, loc, found, first) : first;
        continue;
      }
    } else if (isUniformBut(condition, axis)) {
      continue;
    }
    // Neither of one axis nor of the others: count.
    Tile one(b, loc,
             constantOf(b, loc, withElementType(live.getType(), b.getF32Type()),
                        1.0));
    Tile count(b, loc,
               sumOver(b, loc, where(live, one, one.constant(0.0)), axis));
    return compare(arith::CmpFPredicate::OGT, count, count.constant(0.0));
  }
  return found;
}

namespace {
/// Looks for the condition in what computes a cotangent.
class Search {
public:
  explicit Search(const Adjoint *adjoint) : adjoint(adjoint) {}
  Value find(Tile value, unsigned depth);

private:
  Value findInSelection(arith::SelectOp select, Tile value, unsigned depth);
  Value findInSum(triton::ReduceOp reduce, Tile value, unsigned depth);
  Value findInProduct(triton::DotOp dot, Tile value, unsigned depth);
  Value findInMoved(Tile value, unsigned depth);

  const Adjoint *adjoint;
};
} // namespace

/// Whether what is taken is a product with what `condition` finds to be zero
/// (`unlessZero`): that is said of a number, not of a lane.
static bool isUnlessZero(Value condition, Value taken) {
  auto comparison = condition.getDefiningOp<arith::CmpFOp>();
  if (!comparison || !isZero(comparison.getRhs()) ||
      comparison.getPredicate() != arith::CmpFPredicate::OEQ)
    return false;
  SmallVector<Value> factors{taken};
  for (unsigned step = 0; !factors.empty() && step < kFarEnough; ++step) {
    Value factor = factors.pop_back_val();
    if (factor == comparison.getLhs())
      return true;
    if (isa_and_nonnull<arith::MulFOp, arith::DivFOp, arith::NegFOp,
                        arith::SubFOp>(factor.getDefiningOp()))
      llvm::append_range(factors, factor.getDefiningOp()->getOperands());
  }
  return false;
}

Value Search::findInSelection(arith::SelectOp select, Tile value,
                              unsigned depth) {
  bool inverted = isZero(select.getTrueValue());
  if (!inverted && !isZero(select.getFalseValue()))
    return {};
  Value taken = inverted ? select.getFalseValue() : select.getTrueValue();
  Value condition = select.getCondition();
  if (inverted && isUnlessZero(condition, taken))
    return find(value.like(taken), depth);
  auto type = dyn_cast<RankedTensorType>(value.type());
  if (type && !isa<RankedTensorType>(condition.getType()))
    condition = triton::SplatOp::create(
        value.b(), value.loc(), type.clone(value.b().getI1Type()), condition);
  if (inverted)
    condition = arith::XOrIOp::create(
        value.b(), value.loc(), condition,
        arith::ConstantOp::create(
            value.b(), value.loc(),
            type ? cast<TypedAttr>(DenseElementsAttr::get(
                       cast<ShapedType>(condition.getType()), true))
                 : value.b().getBoolAttr(true)));
  return both(value, condition, find(value.like(taken), depth));
}

/// Where a sum along an axis is not one of zeros.
Value Search::findInSum(triton::ReduceOp reduce, Tile value, unsigned depth) {
  if (!isa_and_present<arith::AddFOp>(reduce.getSingleCombiner()) ||
      !isa<RankedTensorType>(value.type()))
    return {};
  Value live = find(value.like(reduce.getSrcs()[0]), depth);
  return live ? findLiveAcross(value.b(), value.loc(), live, reduce.getAxis())
              : Value();
}

/// Rows that are dead in the first operand, and in what is added.
Value Search::findInProduct(triton::DotOp dot, Tile value, unsigned depth) {
  unsigned axis = cast<RankedTensorType>(dot.getType()).getRank() - 1;
  OpBuilder &b = value.b();
  Value rows = find(value.like(dot.getA()), depth);
  rows = rows ? findLiveAcross(b, value.loc(), rows, axis) : Value();
  if (!rows)
    return {};
  rows = repeatAlong(b, value.loc(), rows, axis,
                     dot.getType().clone(b.getI1Type()));
  if (isZero(dot.getC()))
    return rows;
  Value added = find(value.like(dot.getC()), depth);
  return added && added != rows ? either(value, rows, added) : added;
}

/// Lanes are moved, and their conditions with them.
Value Search::findInMoved(Tile value, unsigned depth) {
  auto result = cast<OpResult>(Value(value));
  Operation *op = result.getOwner();
  IRMapping map;
  for (Value operand : op->getOperands()) {
    Value condition = find(value.like(operand), depth);
    if (!condition)
      return {};
    map.map(operand, condition);
  }
  Operation *clone = value.b().clone(*op, map);
  for (Value moved : clone->getResults())
    moved.setType(withElementType(moved.getType(), value.b().getI1Type()));
  return clone->getResult(result.getResultNumber());
}

Value Search::find(Tile value, unsigned depth) {
  if (Value live = adjoint ? adjoint->getLive(value) : Value())
    return live;
  Operation *op = Value(value).getDefiningOp();
  if (!op || depth-- == 0)
    return {};
  auto operand = [&](unsigned index) {
    return find(value.like(op->getOperand(index)), depth);
  };
  if (auto upstream = dyn_cast<UpstreamOp>(op))
    return upstream.getMask();
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return findInSelection(select, value, depth);
  if (isa<arith::ExtFOp, arith::TruncFOp, triton::FpToFpOp, arith::NegFOp>(op))
    return operand(0);
  if (isa<arith::SubFOp>(op) && isZero(op->getOperand(0)))
    return operand(1);
  // A partial takes the cotangent first, a factor of its own before it.
  if (isa<arith::MulFOp, arith::DivFOp>(op))
    return operand(matchPattern(op->getOperand(0), m_Constant()));
  if (isa<arith::AddFOp, arith::SubFOp>(op)) {
    Value first = operand(0), second = first ? operand(1) : Value();
    return second ? either(value, first, second) : Value();
  }
  if (auto dot = dyn_cast<triton::DotOp>(op))
    return adjoint ? findInProduct(dot, value, depth) : Value();
  if (auto reduce = dyn_cast<triton::ReduceOp>(op))
    return adjoint ? findInSum(reduce, value, depth) : Value();
  if (isa<triton::SplatOp, triton::ExpandDimsOp, triton::BroadcastOp,
          triton::TransOp, triton::ReshapeOp, triton::JoinOp, triton::SplitOp>(
          op))
    return findInMoved(value, depth);
  return {};
}

Value mlir::autodiff::findLiveLanes(Tile cotangent, const Adjoint *adjoint) {
  return Search(adjoint).find(cotangent, kFarEnough);
}

Tile mlir::autodiff::withoutSelection(Tile cotangent) {
  auto select = Value(cotangent).getDefiningOp<arith::SelectOp>();
  if (select && isZero(select.getFalseValue()))
    return cotangent.like(select.getTrueValue());
  if (select && isZero(select.getTrueValue()))
    return cotangent.like(select.getFalseValue());
  return cotangent;
}
