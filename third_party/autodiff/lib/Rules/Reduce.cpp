//===- Reduce.cpp - Reductions --------------------------------------------===//
//
// In y = x₁∘…∘xₙ, let P be the combination of the elements before xᵢ, and S
// that of those after it: y = P∘(xᵢ∘S). P and S are scans with ∘, shifted by
// one element, and the adjoint of xᵢ follows from two applications of ∘. The
// first element has no P and the last one no S, so ∘ need not have a neutral
// element. In forward mode, a reduction of pairs of an element and its tangent
// gives value and tangent.
//
//===----------------------------------------------------------------------===//
#include "PrimalCombiner.h"
#include "autodiff/Builders/Axis.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Rules/CombinerLaws.h"
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/TileFunction.h"
#include "autodiff/Support/Mutation.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A reduction whose derivative is a share of the elements: ẏ is the sum of ẋ
/// over `places`, and x̄ is ȳ there, divided by the number of `ties`.
struct Share {
  Value places; ///< null: everywhere
  Value ties;   ///< how many there are, if each counts for its part only
};

class Reduction {
public:
  Reduction(triton::ReduceOp op, Differentiation &in)
      : op(op), in(in), b(in.builder), loc(in.loc()), axis(op.getAxis()),
        count(op.getSrcs().size()) {}

  /// The share of each element; none where ∘ is an arbitrary function.
  FailureOr<std::optional<Share>> findShare();

  /// Applies a share to a cotangent, which is repeated along the axis, or to a
  /// tangent, which is summed.
  Value pull(const Share &share, Value cotangent, unsigned index);
  Value push(const Share &share, Value tangent, unsigned index);

protected:
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
  Share findAttaining();
  Value findChosen();

  triton::ReduceOp op;
  Differentiation &in;
  OpBuilder &b;
  Location loc;
  unsigned axis, count;
};

class GeneralReversal : Reduction {
public:
  GeneralReversal(triton::ReduceOp op, Adjoint &adjoint)
      : Reduction(op, adjoint), adjoint(adjoint) {}

  LogicalResult run();

private:
  SmallVector<Value> findMemberMasks(const TileFunction &combine,
                                     ArrayRef<Value> masks,
                                     ArrayRef<Value> cotangents);

  Adjoint &adjoint;
};
} // namespace

/// Where x is the maximum (or minimum) y; ties share evenly, as in PyTorch's
/// amax. NaN equals NaN here.
Share Reduction::findAttaining() {
  auto repeated = [&](Value row) { return Tile(b, loc, repeat(row, 0)); };
  // y is computed again from the x that it is compared with. A value that the
  // forward saved may differ in the last bit.
  Value source = in.primal(op.getSrcs()[0]);
  IRMapping mapping;
  mapping.map(op.getSrcs()[0], source);
  Tile x(b, loc, in.widen(source));
  Tile y(b, loc, in.widen(b.clone(*op, mapping)->getResult(0)));
  using arith::CmpFPredicate;
  Value isNan =
      arith::AndIOp::create(b, loc, compare(CmpFPredicate::UNO, x, x),
                            repeat(compare(CmpFPredicate::UNO, y, y), 0));
  Value attains = arith::OrIOp::create(
      b, loc, compare(CmpFPredicate::OEQ, x, repeated(y)), isNan);
  Tile zero = x.constant(0.0);
  return {attains,
          sumOver(b, loc, where(attains, x.constant(1.0), zero), axis)};
}

/// Whether the integers of `tile` are distinct along `axis`, as those of a
/// range are.
static bool countsAlong(Value tile, unsigned axis) {
  Operation *source = tile.getDefiningOp();
  if (isa_and_nonnull<triton::MakeRangeOp>(source))
    return true;
  if (auto map = triton::AxisMap::ofMove(source)) {
    std::optional<unsigned> from = map->toOperand(axis);
    return from && countsAlong(source->getOperand(0), *from);
  }
  if (auto reshape = dyn_cast_or_null<triton::ReshapeOp>(source)) {
    auto from = cast<RankedTensorType>(reshape.getSrc().getType());
    auto to = cast<RankedTensorType>(reshape.getType());
    return from.getRank() == 1 &&
           from.getNumElements() == to.getDimSize(axis) &&
           countsAlong(reshape.getSrc(), 0);
  }
  return false;
}

/// For a reduction by choice (arg-max), where the chosen element is, if one of
/// the results is an index; else null.
Value Reduction::findChosen() {
  if (!isChoice(op.getCombineOp()))
    return {};
  for (auto [index, source] : llvm::enumerate(op.getSrcs())) {
    if (!getElementTypeOrSelf(source.getType()).isInteger() ||
        !countsAlong(source, axis))
      continue;
    return arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq, in.primal(source),
        repeat(in.primal(op.getResult()[index]), index));
  }
  return {};
}

FailureOr<std::optional<Share>> Reduction::findShare() {
  // A single element is not combined with anything.
  if (typeOf(0).getDimSize(axis) == 1)
    return std::optional(Share());
  switch (classifyCombiner(op.getCombineOp())) {
  case Combiner::Sum:
    return std::optional(Share());
  case Combiner::Max:
  case Combiner::Min:
    return std::optional(findAttaining());
  case Combiner::Other:
    break;
  }
  if (Value chosen = findChosen())
    return std::optional(Share{chosen, {}});
  FailureOr<Combination> combination =
      requireOrder(op, axis, in.findActive(op.getSrcs()));
  if (failed(combination))
    return failure();
  if (*combination == Combination::Associative)
    return std::optional<Share>();
  // If all elements are the same, and any combination of them is, too, the
  // first one gets the whole derivative.
  if (mutation::isMade("combiner:each of equal elements"))
    return std::optional(Share());
  return std::optional(
      Share{Axis(b, loc, typeOf(0).getShape(), axis).isFirst(), {}});
}

Value Reduction::pull(const Share &share, Value cotangent, unsigned index) {
  Tile row(b, loc, cotangent);
  Value all = repeat(share.ties ? row / row.like(share.ties) : row, index);
  return share.places
             ? select(share.places, all, in.constant(typeOf(index), 0.0))
             : all;
}

Value Reduction::push(const Share &share, Value tangent, unsigned index) {
  if (share.places)
    tangent = select(share.places, tangent, in.constant(typeOf(index), 0.0));
  Tile sum(b, loc, sumOver(b, loc, tangent, axis));
  return share.ties ? sum / sum.like(share.ties) : sum;
}

/// Where a member of an element has a cotangent, given the masks of those of
/// results: where one has that depends on it.
SmallVector<Value>
GeneralReversal::findMemberMasks(const TileFunction &combine,
                                 ArrayRef<Value> masks,
                                 ArrayRef<Value> cotangents) {
  SmallVector<Value> found;
  for (unsigned member = 0; member < masks.size(); ++member) {
    llvm::BitVector varied(2 * count);
    varied.set(member + count);
    llvm::BitVector results = combine.findVaried(varied);
    // The last element is a result itself.
    results.set(member);
    SmallVector<Value> some;
    for (unsigned result : results.set_bits())
      if (cotangents[result])
        some.push_back(masks[result]);
    found.push_back(oneHolds(b, loc, some));
  }
  return found;
}

LogicalResult GeneralReversal::run() {
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

  // The members of the tuple that carry a derivative: in elements, and in
  // combinations of elements.
  llvm::BitVector wanted = adjoint.findActive(op.getSrcs());
  llvm::BitVector members = combine->findMembers(wanted);
  wanted.resize(2 * count);
  llvm::BitVector varied = members;
  varied.resize(2 * count);
  varied <<= count;

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

  // First through P∘rest, then through rest = x∘S.
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
  // Where a result has no cotangent, its operands may be anything: they must
  // not reach what others have.
  SmallVector<Value> masks = emitLanesOfResults(adjoint, op);
  for (auto [index, mask] : llvm::enumerate(masks))
    if (mask)
      mask = repeat(mask, index);
  auto ofOuter = combine->pullBack(adjoint, outer, cotangents, varied, masks);
  if (failed(ofOuter))
    return failure();
  SmallVector<Value> ofRest(count);
  for (unsigned index : members.set_bits())
    ofRest[index] =
        atEdge(isFirst, cotangents[index], (*ofOuter)[index + count], index);
  auto ofPair = combine->pullBack(adjoint, pair, ofRest, wanted,
                                  findMemberMasks(*combine, masks, cotangents));
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
        live =
            emitLanes(adjoint, adjoint.lanes.through(op->getOpOperand(index)),
                      typeOf(index));
      isFound = true;
      share = onlyLive(Tile(b, loc, share), cotangents, live);
    }
    adjoint.add(op.getSrcs()[index], share);
  }
  return success();
}

static LogicalResult pullBack(triton::ReduceOp op, Adjoint &adjoint) {
  if (llvm::none_of(op.getResult(),
                    [&](Value result) { return adjoint.get(result); }))
    return success();
  Reduction reduction(op, adjoint);
  FailureOr<std::optional<Share>> share = reduction.findShare();
  if (failed(share))
    return failure();
  if (!*share)
    return GeneralReversal(op, adjoint).run();
  for (auto [index, result] : llvm::enumerate(op.getResult()))
    if (Value cotangent = adjoint.get(result))
      adjoint.add(op.getSrcs()[index],
                  reduction.pull(**share, cotangent, index));
  return success();
}

static LogicalResult push(triton::ReduceOp op, Tangents &tangents) {
  Reduction reduction(op, tangents);
  FailureOr<std::optional<Share>> share = reduction.findShare();
  if (failed(share))
    return failure();
  if (!*share)
    return pushPairs(op, op.getCombineOp(), tangents,
                     [&](ValueRange tiles, CombineBuilder build) {
                       return reduceWith(tangents.builder, tangents.loc(),
                                         tiles, op.getAxis(), build);
                     });
  for (auto [index, source] : llvm::enumerate(op.getSrcs()))
    if (Value tangent = tangents.get(source))
      tangents.add(op.getResult()[index],
                   reduction.push(**share, tangent, index));
  return success();
}

void mlir::autodiff::addReduceRules(RuleTable &table) {
  table.add<triton::ReduceOp>(
      "sum: x̄ += repeat ȳ; max, min: ȳ to the elements that attain y, shared "
      "on ties; arg-max, arg-min: ȳ to the chosen element; any other "
      "associative ∘: x̄ᵢ by the rules of P∘(xᵢ∘S), with P and S all that is "
      "combined before and after",
      pullBack, push);
}
