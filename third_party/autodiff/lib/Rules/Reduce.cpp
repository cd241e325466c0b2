//===- Reduce.cpp - Reductions --------------------------------------------===//
//
// In y = x₁∘…∘xₙ each xᵢ stands between what comes before it, P, and what comes
// after, S: y = P∘(xᵢ∘S). P and S are scans with the same ∘, shifted by one
// element, and the adjoint of xᵢ follows from two applications of ∘. The first
// element has no P and the last one no S: ∘ need not have a neutral element.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Rules/Axis.h"
#include "autodiff/Rules/Combiner.h"
#include "autodiff/Rules/CombinerLaws.h"
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Rules/TileFunction.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
class ReduceReversal {
public:
  ReduceReversal(triton::ReduceOp op, Adjoint &adjoint)
      : op(op), adjoint(adjoint), b(adjoint.builder), loc(adjoint.loc()),
        axis(op.getAxis()), count(op.getSrcs().size()) {}

  LogicalResult run();

private:
  RankedTensorType typeOf(unsigned index) {
    return cast<RankedTensorType>(op.getSrcs()[index].getType());
  }
  Value repeat(Value row, unsigned index) {
    Type element = getElementTypeOrSelf(row.getType());
    return repeatAlong(
        b, loc, row, axis,
        cast<RankedTensorType>(withElementType(typeOf(index), element)));
  }
  Value select(Value condition, Value a, Value c) {
    return arith::SelectOp::create(b, loc, condition, a, c);
  }
  void give(unsigned index, Value share) {
    adjoint.add(op.getSrcs()[index], share);
  }

  Value shareOfExtremum();
  Value findChosen();
  void shareOfEqual();
  LogicalResult runGeneral();

  triton::ReduceOp op;
  Adjoint &adjoint;
  OpBuilder &b;
  Location loc;
  unsigned axis, count;
};
} // namespace

/// ȳ where x attains y, shared evenly on ties, as PyTorch's amax does. NaN
/// attains NaN.
Value ReduceReversal::shareOfExtremum() {
  auto repeated = [&](Value row) { return Tile(b, loc, repeat(row, 0)); };
  // y is taken from the very x that it is compared with: what the forward
  // saved may differ in the last place from what is recomputed here.
  Value source = adjoint.primal(op.getSrcs()[0]);
  IRMapping mapping;
  mapping.map(op.getSrcs()[0], source);
  Tile x(b, loc, adjoint.widen(source));
  Tile y(b, loc, adjoint.widen(b.clone(*op, mapping)->getResult(0)));
  using arith::CmpFPredicate;
  Value isNan =
      arith::AndIOp::create(b, loc, compare(CmpFPredicate::UNO, x, x),
                            repeat(compare(CmpFPredicate::UNO, y, y), 0));
  Value attains = arith::OrIOp::create(
      b, loc, compare(CmpFPredicate::OEQ, x, repeated(y)), isNan);
  Tile zero = x.constant(0.0);
  Tile ties(b, loc,
            sumOver(b, loc, where(attains, x.constant(1.0), zero), axis));
  Tile share = ties.like(adjoint.get(op.getResult()[0])) / ties;
  return where(attains, repeated(share), zero);
}

/// Whether the integers of `tile` are distinct along `axis`: those of a range.
static bool countsAlong(Value tile, unsigned axis) {
  Operation *source = tile.getDefiningOp();
  if (isa_and_nonnull<triton::MakeRangeOp>(source))
    return true;
  if (auto broadcast = dyn_cast_or_null<triton::BroadcastOp>(source)) {
    auto from = cast<RankedTensorType>(broadcast.getSrc().getType());
    auto to = cast<RankedTensorType>(broadcast.getType());
    return from.getDimSize(axis) == to.getDimSize(axis) &&
           countsAlong(broadcast.getSrc(), axis);
  }
  if (auto expand = dyn_cast_or_null<triton::ExpandDimsOp>(source))
    return expand.getAxis() != axis &&
           countsAlong(expand.getSrc(), axis - (expand.getAxis() < axis));
  if (auto reshape = dyn_cast_or_null<triton::ReshapeOp>(source)) {
    auto from = cast<RankedTensorType>(reshape.getSrc().getType());
    auto to = cast<RankedTensorType>(reshape.getType());
    return from.getRank() == 1 &&
           from.getNumElements() == to.getDimSize(axis) &&
           countsAlong(reshape.getSrc(), 0);
  }
  return false;
}

/// Where the element is that a reduction by choice (arg-max) has chosen, if an
/// index among its results tells; else null.
Value ReduceReversal::findChosen() {
  if (!isChoice(op.getCombineOp()))
    return {};
  for (auto [index, source] : llvm::enumerate(op.getSrcs())) {
    if (!getElementTypeOrSelf(source.getType()).isInteger() ||
        !countsAlong(source, axis))
      continue;
    return arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq, adjoint.primal(source),
        repeat(adjoint.primal(op.getResult()[index]), index));
  }
  return {};
}

/// Of elements that are the same and stay so, the first one stands for all.
void ReduceReversal::shareOfEqual() {
  Value isFirst = Axis(b, loc, typeOf(0).getShape(), axis).isFirst();
  for (auto [index, result] : llvm::enumerate(op.getResult()))
    if (Value cotangent = adjoint.get(result)) {
      Value all = repeat(cotangent, index);
      give(index,
           mutation::isMade("combiner:each of equal elements")
               ? all
               : select(isFirst, all, adjoint.constant(typeOf(index), 0.0)));
    }
}

LogicalResult ReduceReversal::runGeneral() {
  ArrayRef<int64_t> shape = typeOf(0).getShape();
  FailureOr<TileFunction> combine =
      TileFunction::lift(op.getCombineOp(), shape);
  if (failed(combine))
    return failure();
  if (combine->findActiveCapture(adjoint))
    return op.emitError("no derivative rule for a reduction whose combine "
                        "function uses a differentiated value from outside; "
                        "combine it with the elements before or after");
  combine->preferFirstOnTies();

  // Members of the tuple that carry a derivative: in x, and in combinations.
  llvm::BitVector members = adjoint.findActive(op.getSrcs()), wanted = members,
                  varied(2 * count);
  wanted.resize(2 * count);
  for (llvm::BitVector before; before != members;) {
    before = members;
    varied = members;
    varied.resize(2 * count);
    for (unsigned index : members.set_bits())
      varied.set(index + count);
    members |= combine->findVaried(varied);
  }
  varied.reset(0, count);

  SmallVector<Value> x = llvm::map_to_vector(
      op.getSrcs(), [&](Value source) { return adjoint.primal(source); });
  Axis along(b, loc, shape, axis);
  Region &region = op.getCombineOp();
  SmallVector<Value> before =
      along.before(scanWith(region, x, axis, /*reverse=*/false, adjoint));
  SmallVector<Value> after =
      along.after(scanWith(region, x, axis, /*reverse=*/true, adjoint));
  Value isFirst = along.isFirst(), isLast = along.isLast();

  SmallVector<Value> pair = x;
  pair.append(after);
  SmallVector<Value> rest = combine->evaluate(adjoint, pair);
  for (auto [tile, own] : llvm::zip_equal(rest, x))
    tile = select(isLast, own, tile);

  // Through P∘rest, then through rest = x∘S.
  SmallVector<Value> cotangents;
  for (auto [index, result] : llvm::enumerate(op.getResult())) {
    Value cotangent = adjoint.get(result);
    cotangents.push_back(cotangent ? repeat(cotangent, index) : Value());
  }
  auto orZero = [&](Value tile, unsigned index) {
    return tile ? tile : adjoint.constant(typeOf(index), 0.0);
  };
  auto atEdge = [&](Value edge, Value own, Value combined, unsigned index) {
    if (!own && !combined)
      return Value();
    return select(edge, orZero(own, index), orZero(combined, index));
  };
  SmallVector<Value> outer = before;
  outer.append(rest);
  auto ofOuter = combine->pullBack(adjoint, outer, cotangents, varied);
  if (failed(ofOuter))
    return failure();
  SmallVector<Value> ofRest(count);
  for (unsigned index : members.set_bits())
    ofRest[index] =
        atEdge(isFirst, cotangents[index], (*ofOuter)[index + count], index);
  auto ofPair = combine->pullBack(adjoint, pair, ofRest, wanted);
  if (failed(ofPair))
    return failure();
  Factors factors(adjoint);
  for (Value cotangent : cotangents)
    factors.addCotangent(cotangent);
  for (Value primal : llvm::concat<Value>(op.getSrcs(), op.getResult()))
    factors.add(adjoint.primal(primal), primal);
  LiveMask live;
  bool isFound = false;
  for (unsigned index : wanted.set_bits()) {
    Value share = atEdge(isLast, ofRest[index], (*ofPair)[index], index);
    if (share && !factors.giveFinite(share)) {
      if (!isFound)
        live = emitLanes(adjoint, adjoint.lanes.through(op->getOpOperand(0)),
                         typeOf(0));
      isFound = true;
      share = onlyLive(Tile(b, loc, share), cotangents, live);
    }
    give(index, share);
  }
  return success();
}

LogicalResult ReduceReversal::run() {
  if (llvm::none_of(op.getResult(),
                    [&](Value result) { return adjoint.get(result); }))
    return success();
  // One element is combined with nothing.
  if (typeOf(0).getDimSize(axis) == 1) {
    for (auto [index, result] : llvm::enumerate(op.getResult()))
      if (Value cotangent = adjoint.get(result))
        give(index, repeat(cotangent, index));
    return success();
  }
  switch (classifyCombiner(op.getCombineOp())) {
  case Combiner::Sum:
    give(0, repeat(adjoint.get(op.getResult()[0]), 0));
    return success();
  case Combiner::Max:
  case Combiner::Min:
    give(0, shareOfExtremum());
    return success();
  case Combiner::Other:
    break;
  }
  Value chosen = findChosen();
  if (!chosen) {
    FailureOr<Combination> combination =
        requireOrder(op, axis, adjoint.findActive(op.getSrcs()));
    if (failed(combination))
      return failure();
    if (*combination == Combination::Associative)
      return runGeneral();
    shareOfEqual();
    return success();
  }
  for (auto [index, result] : llvm::enumerate(op.getResult()))
    if (Value cotangent = adjoint.get(result))
      give(index, select(chosen, repeat(cotangent, index),
                         adjoint.constant(typeOf(index), 0.0)));
  return success();
}

static LogicalResult reduce(triton::ReduceOp op, Adjoint &adjoint) {
  return ReduceReversal(op, adjoint).run();
}

void mlir::autodiff::addReduceRules(RuleTable &table) {
  table.add<triton::ReduceOp>(
      "sum: x̄ += repeat ȳ; max, min: ȳ to the elements that attain y, shared "
      "on ties; arg-max, arg-min: ȳ to the chosen element; any other "
      "associative ∘: x̄ᵢ by the rules of P∘(xᵢ∘S), with P and S all that is "
      "combined before and after",
      reduce);
}
