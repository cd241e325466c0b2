//===- Scan.cpp - Scans ---------------------------------------------------===//
//
// A scan is the recurrence sᵢ = sᵢ₋₁∘xᵢ, s₁ = x₁. Its adjoint runs the other
// way. With A, B the derivatives of ∘ by its left and right side at (sᵢ₋₁, xᵢ):
//
//   s̄ᵢ = ȳᵢ + wᵢ₊₁    wᵢ = Aᵢᵀ s̄ᵢ = Aᵢᵀ wᵢ₊₁ + Aᵢᵀ ȳᵢ    x̄ᵢ = Bᵢᵀ s̄ᵢ, x̄₁ = s̄₁
//
// w is a linear recurrence: a scan over affine maps (M, v), from the other end.
// For a tuple M is a matrix. Of it only those entries exist that a product of
// the matrices can fill, so that a diagonal derivative stays a diagonal.
//
// Forward, a scan of pairs of an element and its tangent gives both.
//
// "Previous" and "next" are meant in the direction of the scan.
//
//===----------------------------------------------------------------------===//
#include "PrimalCombiner.h"
#include "autodiff/Builders/Axis.h"
#include "autodiff/Builders/LanesAcross.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Rules/CombinerLaws.h"
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/TileFunction.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A square matrix of tiles; null entries are zero.
using Matrix = SmallVector<SmallVector<Value>>;

class ScanReversal {
public:
  ScanReversal(triton::ScanOp op, Adjoint &adjoint)
      : op(op), adjoint(adjoint), b(adjoint.builder), loc(adjoint.loc()),
        type(cast<RankedTensorType>(op.getSrcs()[0].getType())),
        along(b, loc, type.getShape(), op.getAxis()),
        count(op.getSrcs().size()) {}

  LogicalResult run();

private:
  Value add(Value a, Value c) {
    return a && c ? Value(Tile(b, loc, a) + Tile(b, loc, c)) : a ? a : c;
  }
  Value multiply(Value a, Value c) {
    return a && c ? Value(Tile(b, loc, a) * Tile(b, loc, c)) : Value();
  }
  Value zero(unsigned index) {
    return adjoint.constant(op.getSrcs()[index].getType(), 0.0);
  }
  /// The type in which the recurrence is solved.
  Type element() {
    auto isDouble = [](Type t) { return getElementTypeOrSelf(t).isF64(); };
    return llvm::any_of(op.getSrcs().getTypes(), isDouble) ? b.getF64Type()
                                                           : b.getF32Type();
  }
  Value convert(Value tile, Type to) {
    return tile ? castFloat(b, loc, tile, getElementTypeOrSelf(to)) : tile;
  }
  llvm::BitVector findMembers(const TileFunction &combine);
  LogicalResult findJacobian(const TileFunction &combine, ValueRange arguments,
                             const llvm::BitVector &varied);
  SmallVector<llvm::BitVector> findFilled();
  SmallVector<Value> solve();
  LogicalResult runGeneral();
  LiveMask findLive();
  SmallVector<Value> findLiveMembers(LiveMask live);
  Value onlyLive(Value value, LiveMask mask, const Factors &factors);

  triton::ScanOp op;
  Adjoint &adjoint;
  OpBuilder &b;
  Location loc;
  RankedTensorType type;
  Axis along;
  unsigned count;
  /// ȳ for each member of the tuple, null for zero.
  SmallVector<Value> cotangents;
  /// The members whose adjoint is not zero, in the order of rows of Aᵀ.
  SmallVector<unsigned> state;
  /// Aᵀ: entry [j][r] is the derivative of member r of s by member j of the
  /// previous s.
  Matrix transposed;
};
} // namespace

/// The members of s that depend on active members of x.
llvm::BitVector ScanReversal::findMembers(const TileFunction &combine) {
  llvm::BitVector members = adjoint.findActive(op.getSrcs());
  for (llvm::BitVector before; before != members;) {
    before = members;
    llvm::BitVector varied = members;
    varied.resize(2 * count);
    for (unsigned index : members.set_bits())
      varied[index + count] = adjoint.isActive(op.getSrcs()[index]);
    members |= combine.findVaried(varied);
  }
  return members;
}

/// Finds the state, starting from members with a cotangent, and Aᵀ: one row of
/// A at a time, as the adjoints for one member of s.
LogicalResult ScanReversal::findJacobian(const TileFunction &combine,
                                         ValueRange arguments,
                                         const llvm::BitVector &members) {
  llvm::BitVector varied = members;
  varied.resize(2 * count);
  for (unsigned index : members.set_bits())
    if (cotangents[index])
      state.push_back(index);
  SmallVector<SmallVector<Value>> rows;
  for (unsigned row = 0; row < state.size(); ++row) {
    SmallVector<Value> unit(count);
    unit[state[row]] =
        adjoint.constant(op.getSrcs()[state[row]].getType(), 1.0);
    auto derivatives = combine.pullBack(adjoint, arguments, unit, varied);
    if (failed(derivatives))
      return failure();
    rows.push_back(*derivatives);
    for (unsigned index : members.set_bits())
      if ((*derivatives)[index] && !llvm::is_contained(state, index))
        state.push_back(index);
  }
  for (unsigned member : state)
    transposed.push_back(llvm::map_to_vector(rows, [&](ArrayRef<Value> row) {
      return convert(row[member], element());
    }));
  return success();
}

/// Where s̄ is not zero: in lanes whose elements are combined into live ones.
LiveMask ScanReversal::findLive() {
  // An integer is live for its own sake, too.
  int active = adjoint.findActive(op.getSrcs()).find_first();
  OpOperand &source = op->getOpOperand(active);
  LiveMask mask = emitLanes(adjoint, adjoint.lanes.through(source), type);
  if (!mask.isExact) {
    Value nonZero = findLiveFrom(b, loc, findNonZero(b, loc, cotangents),
                                 op.getAxis(), op.getReverse());
    mask.condition = bothHold(b, loc, mask.condition, nonZero);
    mask.isExact = true;
  }
  return mask;
}

/// The same for each member of the state, if some results have no cotangent in
/// lanes where others have: a member is live where a result is that depends on
/// it, at that place or at a later one. Empty if all are `live` alike.
SmallVector<Value> ScanReversal::findLiveMembers(LiveMask live) {
  SmallVector<Value> results = emitLanesOfResults(adjoint, op);
  if (results.empty())
    return {};
  SmallVector<Value> members;
  for (auto [member, filled] : llvm::enumerate(findFilled())) {
    filled.set(member);
    SmallVector<Value> some;
    for (unsigned other : filled.set_bits())
      if (cotangents[state[other]])
        some.push_back(results[state[other]]);
    Value any = oneHolds(b, loc, some);
    if (any)
      any = findLiveFrom(b, loc, any, op.getAxis(), op.getReverse());
    members.push_back(bothHold(b, loc, any, live.condition));
  }
  return members;
}

/// A derivative of ∘, the factor of s̄, set to zero where s̄ is zero.
Value ScanReversal::onlyLive(Value value, LiveMask mask,
                             const Factors &factors) {
  if (!value || factors.giveFinite(value))
    return value;
  return autodiff::onlyLive(Tile(b, loc, value), {}, mask);
}

/// The entries that products of Aᵀ can have: the transitive closure.
SmallVector<llvm::BitVector> ScanReversal::findFilled() {
  unsigned size = state.size();
  SmallVector<llvm::BitVector> filled(size, llvm::BitVector(size));
  for (unsigned j = 0; j < size; ++j)
    for (unsigned r = 0; r < size; ++r)
      filled[j][r] = transposed[j][r] != nullptr;
  for (unsigned k = 0; k < size; ++k)
    for (unsigned j = 0; j < size; ++j)
      if (filled[j][k])
        filled[j] |= filled[k];
  return filled;
}

/// w for each member of the state, by a scan over affine maps.
SmallVector<Value> ScanReversal::solve() {
  unsigned size = state.size();
  if (size == 0)
    return {};
  SmallVector<llvm::BitVector> filled = findFilled();
  Value zero = constantOf(b, loc, type.clone(element()), 0.0);
  auto orZero = [](Value value, Value zero) { return value ? value : zero; };
  SmallVector<Value> tiles;
  for (unsigned j = 0; j < size; ++j)
    for (unsigned r : filled[j].set_bits())
      tiles.push_back(orZero(transposed[j][r], zero));
  for (unsigned j = 0; j < size; ++j) {
    Value sum;
    for (unsigned r = 0; r < size; ++r)
      sum = add(sum, multiply(transposed[j][r],
                              convert(cotangents[state[r]], element())));
    tiles.push_back(orZero(sum, zero));
  }

  // (M, v) is applied after (N, u), which is nearer to the end: (M·N, v + M·u).
  auto unpack = [&](ValueRange values) {
    Matrix matrix(size, SmallVector<Value>(size));
    for (unsigned j = 0; j < size; ++j)
      for (unsigned r : filled[j].set_bits()) {
        matrix[j][r] = values.front();
        values = values.drop_front();
      }
    return std::pair(matrix, values);
  };
  auto compose = [&](OpBuilder &, ValueRange running, ValueRange next) {
    Value none = constantOf(b, loc, element(), 0.0);
    auto [n, u] = unpack(running);
    auto [m, v] = unpack(next);
    SmallVector<Value> results;
    for (unsigned j = 0; j < size; ++j)
      for (unsigned r : filled[j].set_bits()) {
        Value sum;
        for (unsigned k = 0; k < size; ++k)
          sum = add(sum, multiply(m[j][k], n[k][r]));
        results.push_back(orZero(sum, none));
      }
    for (unsigned j = 0; j < size; ++j) {
      Value sum = v[j];
      for (unsigned k = 0; k < size; ++k)
        sum = add(sum, multiply(m[j][k], u[k]));
      results.push_back(sum);
    }
    return results;
  };
  SmallVector<Value> solved =
      scanWith(b, loc, tiles, op.getAxis(), !op.getReverse(), compose);
  return SmallVector<Value>(ArrayRef(solved).take_back(size));
}

LogicalResult ScanReversal::runGeneral() {
  FailureOr<TileFunction> combine =
      TileFunction::lift(op.getCombineOp(), type.getShape());
  if (failed(combine))
    return failure();
  if (combine->findActiveCapture(adjoint))
    return op.emitError("no derivative rule for a scan whose combine function "
                        "uses a differentiated value from outside; combine it "
                        "with the elements before or after");
  auto previous = [&](ValueRange tiles) {
    return op.getReverse() ? along.after(tiles) : along.before(tiles);
  };
  auto next = [&](ValueRange tiles) {
    return op.getReverse() ? along.before(tiles) : along.after(tiles);
  };
  Value isStart = op.getReverse() ? along.isLast() : along.isFirst();
  Value isEnd = op.getReverse() ? along.isFirst() : along.isLast();

  SmallVector<Value> arguments = previous(llvm::map_to_vector(
      op.getResult(), [&](Value result) { return adjoint.primal(result); }));
  for (Value source : op.getSrcs())
    arguments.push_back(adjoint.primal(source));
  if (failed(findJacobian(*combine, arguments, findMembers(*combine))))
    return failure();
  LiveMask live = findLive();
  SmallVector<Value> members = findLiveMembers(live);
  Factors factors(adjoint);
  for (Value primal : llvm::concat<Value>(op.getSrcs(), op.getResult()))
    factors.add(adjoint.primal(primal), primal);
  for (SmallVector<Value> &row : transposed)
    for (auto [number, entry] : llvm::enumerate(row))
      entry = onlyLive(
          entry, members.empty() ? live : LiveMask{members[number]}, factors);

  SmallVector<Value> totals = cotangents;
  for (auto [member, w] : llvm::zip(state, next(solve()))) {
    Value none = zero(member);
    totals[member] = add(totals[member],
                         arith::SelectOp::create(b, loc, isEnd, none,
                                                 convert(w, none.getType())));
  }
  llvm::BitVector wanted(2 * count);
  for (auto [index, source] : llvm::enumerate(op.getSrcs()))
    wanted[index + count] = adjoint.isActive(source);
  SmallVector<Value> masks(members.empty() ? 0 : count);
  for (auto [member, mask] : llvm::zip(state, members))
    masks[member] = mask;
  auto through = combine->pullBack(adjoint, arguments, totals, wanted, masks);
  if (failed(through))
    return failure();
  for (Value total : totals)
    factors.addCotangent(total);
  for (auto [index, source] : llvm::enumerate(op.getSrcs())) {
    Value own = totals[index];
    Value combined = onlyLive((*through)[index + count], live, factors);
    if (wanted[index + count] && (own || combined))
      adjoint.add(source, arith::SelectOp::create(
                              b, loc, isStart, own ? own : zero(index),
                              combined ? combined : zero(index)));
  }
  return success();
}

namespace {
/// How a scan treats tangents and cotangents.
enum class Kind {
  Identity, ///< each element stands for itself
  Sum,
  General
};
} // namespace

static FailureOr<Kind> classify(triton::ScanOp op, const Differentiation &in) {
  auto type = cast<RankedTensorType>(op.getSrcs()[0].getType());
  if (type.getDimSize(op.getAxis()) == 1)
    return Kind::Identity;
  if (classifyCombiner(op.getCombineOp()) == Combiner::Sum)
    return Kind::Sum;
  FailureOr<Combination> combination =
      requireOrder(op, op.getAxis(), in.findActive(op.getSrcs()));
  if (failed(combination))
    return failure();
  return *combination == Combination::Associative ? Kind::General
                                                  : Kind::Identity;
}

/// The running sum of `tile` along the axis of `op`.
static Value runningSum(triton::ScanOp op, Value tile, bool reverse,
                        Differentiation &in) {
  auto sum = [&](OpBuilder &, ValueRange running, ValueRange next) {
    Tile first(in.builder, in.loc(), running[0]);
    return SmallVector<Value>{first + first.like(next[0])};
  };
  return scanWith(in.builder, in.loc(), tile, op.getAxis(), reverse, sum)[0];
}

LogicalResult ScanReversal::run() {
  for (Value result : op.getResult())
    cotangents.push_back(adjoint.get(result));
  if (llvm::none_of(cotangents, [](Value cotangent) { return cotangent; }))
    return success();
  FailureOr<Kind> kind = classify(op, adjoint);
  if (failed(kind))
    return failure();
  if (*kind == Kind::General)
    return runGeneral();
  for (auto [source, cotangent] : llvm::zip_equal(op.getSrcs(), cotangents))
    adjoint.add(source,
                *kind == Kind::Identity
                    ? cotangent
                    : runningSum(op, cotangent, !op.getReverse(), adjoint));
  return success();
}

static LogicalResult pullBack(triton::ScanOp op, Adjoint &adjoint) {
  return ScanReversal(op, adjoint).run();
}

static LogicalResult push(triton::ScanOp op, Tangents &tangents) {
  FailureOr<Kind> kind = classify(op, tangents);
  if (failed(kind))
    return failure();
  if (*kind == Kind::General)
    return pushPairs(op, op.getCombineOp(), tangents,
                     [&](ValueRange tiles, CombineBuilder build) {
                       return scanWith(tangents.builder, tangents.loc(), tiles,
                                       op.getAxis(), op.getReverse(), build);
                     });
  for (auto [source, result] : llvm::zip_equal(op.getSrcs(), op.getResult()))
    if (Value tangent = tangents.get(source))
      tangents.add(result,
                   *kind == Kind::Identity
                       ? tangent
                       : runningSum(op, tangent, op.getReverse(), tangents));
  return success();
}

void mlir::autodiff::addScanRules(RuleTable &table) {
  table.add<triton::ScanOp>(
      "sum: x̄ += running sum of ȳ from the other end; any other associative "
      "∘: s̄ᵢ = ȳᵢ + Aᵢ₊₁ᵀ s̄ᵢ₊₁ as a scan over affine maps, x̄ᵢ += Bᵢᵀ s̄ᵢ, with "
      "A, B the derivatives of sᵢ₋₁∘xᵢ",
      pullBack, push);
}
