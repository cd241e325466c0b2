//===- DeadLanes.cpp - Lanes that are left out, in a backward -------------===//
#include "autodiff/Rules/DeadLanes.h"

#include "autodiff/Analysis/LiveLanes.h"
#include "autodiff/Builders/LanesAcross.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/Infinities.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct Emitter {
  Adjoint &adjoint;
  OpBuilder &b = adjoint.builder;
  Location loc = adjoint.loc();

  LiveMask emit(const Lanes *lanes, Type type);

private:
  Value where(const Lanes *lanes, Type type);
  LiveMask runs(const Lanes *lanes, Type type);
  LiveMask all(const Lanes *lanes, Type type);
  LiveMask any(const Lanes *lanes, Type type);
  LiveMask through(const Lanes *lanes);
  Value back(OpOperand &use, Value lanes);
  Value backAlong(const triton::AxisMap &map, Value lanes, Type type);
  Value constant(bool holds, Type type) {
    return integerOf(b, loc, withElementType(type, b.getI1Type()), holds);
  }
};
} // namespace

Value Emitter::where(const Lanes *lanes, Type type) {
  Value here = adjoint.recomputed(lanes->condition);
  if (lanes->kind == Lanes::Kind::Unless)
    here = arith::XOrIOp::create(b, loc, here, constant(true, here.getType()));
  auto tile = dyn_cast<RankedTensorType>(type);
  return repeatOver(b, loc, here, lanes->axes,
                    tile ? tile.getShape() : ArrayRef<int64_t>());
}

LiveMask Emitter::runs(const Lanes *lanes, Type type) {
  auto loop = cast<scf::ForOp>(lanes->loop);
  bool isAgain = lanes->kind == Lanes::Kind::Again;
  if (loop.getUnsignedCmp() || mutation::isMade("lanes:of no iteration"))
    return {Value(), /*isExact=*/!loop.getUnsignedCmp()};
  Value from = adjoint.recomputed(isAgain ? loop.getInductionVar()
                                          : loop.getLowerBound());
  Value end = adjoint.recomputed(loop.getUpperBound());
  // The iteration's number is below the end, so this does not overflow.
  Value left = isAgain ? arith::SubIOp::create(b, loc, end, from) : end;
  Value condition = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::slt,
      isAgain ? adjoint.recomputed(loop.getStep()) : from, left);
  return {splatTo(b, loc, condition, withElementType(type, b.getI1Type()))};
}

LiveMask Emitter::all(const Lanes *lanes, Type type) {
  LiveMask mask;
  for (const Lanes *part : lanes->parts) {
    auto [condition, isExact] = emit(part, type);
    mask.isExact &= isExact;
    mask.condition = bothHold(b, loc, mask.condition, condition);
  }
  return mask;
}

LiveMask Emitter::any(const Lanes *lanes, Type type) {
  LiveMask mask;
  for (const Lanes *part : lanes->parts) {
    auto [condition, isExact] = emit(part, type);
    if (!condition)
      return {Value(), isExact};
    mask.isExact &= isExact;
    mask.condition =
        mask.condition ? arith::OrIOp::create(b, loc, mask.condition, condition)
                       : condition;
  }
  return mask;
}

/// Live lanes of an operand, a tile of `type` or a scalar, given those of the
/// result: where lanes are reduced along an axis, a lane is live if one of them
/// is.
Value Emitter::backAlong(const triton::AxisMap &map, Value lanes, Type type) {
  SmallVector<int32_t> order; // the operand's axes, as the result has them
  for (unsigned axis = map.getResultRank(); axis-- > 0;)
    if (std::optional<unsigned> place = map.toOperand(axis))
      order.insert(order.begin(), *place);
    else if (lanes)
      lanes = findLiveAcross(b, loc, lanes, axis, adjoint.assumed);
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!lanes || !tile)
    return lanes;
  if (!isa<RankedTensorType>(lanes.getType()))
    return splatTo(b, loc, lanes, type);
  if (!llvm::is_sorted(order)) {
    auto sorted = llvm::to_vector(llvm::seq<int32_t>(0, order.size()));
    llvm::sort(sorted,
               [&](int32_t x, int32_t y) { return order[x] < order[y]; });
    lanes = triton::TransOp::create(b, loc, lanes, sorted);
  }
  for (unsigned axis : llvm::seq(map.getOperandRank())) {
    if (map.toResult(axis))
      continue;
    SmallVector<int64_t> shape(
        cast<RankedTensorType>(lanes.getType()).getShape());
    shape.insert(shape.begin() + axis, tile.getDimSize(axis));
    lanes = repeatAlong(b, loc, lanes, axis, tile.clone(shape));
  }
  return lanes;
}

/// Live lanes of an operand, given the live `lanes` of its user's only result;
/// null for all.
Value Emitter::back(OpOperand &use, Value lanes) {
  Operation *op = use.getOwner();
  Type type = withElementType(use.get().getType(), b.getI1Type());
  if (auto map = triton::AxisMap::of(use); map && !map->isMixed())
    return backAlong(*map, lanes, type);
  if (auto scan = dyn_cast<triton::ScanOp>(op))
    return findLiveFrom(b, loc, lanes, scan.getAxis(), scan.getReverse());
  if (isa<triton::ReshapeOp>(op))
    return triton::ReshapeOp::create(b, loc, type, lanes);
  if (isa<triton::JoinOp>(op))
    return triton::SplitOp::create(b, loc, lanes)
        .getResult(use.getOperandNumber());
  auto swap = cast<SwapOp>(op); // no other operation moves lanes
  return SwapOp::create(b, loc, lanes, swap.getAxis());
}

LiveMask Emitter::through(const Lanes *lanes) {
  Operation *op = lanes->use->getOwner();
  SmallVector<Value> results;
  bool isExact = true, isAll = true;
  for (auto [part, result] : llvm::zip(lanes->parts, op->getResults())) {
    LiveMask mask = emit(part, result.getType());
    isExact &= mask.isExact;
    isAll &= !mask.condition;
    results.push_back(mask.condition);
  }
  if (isAll)
    return {Value(), isExact};
  if (!isa<triton::SplitOp>(op))
    return {back(*lanes->use, results[0]), isExact};
  for (auto [condition, result] : llvm::zip_equal(results, op->getResults()))
    if (!condition)
      condition = constant(true, result.getType());
  return {triton::JoinOp::create(b, loc, results[0], results[1]), isExact};
}

LiveMask Emitter::emit(const Lanes *lanes, Type type) {
  switch (lanes->kind) {
  case Lanes::Kind::None:
    return {constant(false, type)};
  case Lanes::Kind::All:
    return {};
  case Lanes::Kind::Some:
  case Lanes::Kind::Unknown:
    return {Value(), mutation::isMade("lanes:those that nobody knows, too")};
  case Lanes::Kind::Where:
  case Lanes::Kind::Unless:
    return {where(lanes, type)};
  case Lanes::Kind::Runs:
  case Lanes::Kind::Again:
    return runs(lanes, type);
  case Lanes::Kind::And:
    return all(lanes, type);
  case Lanes::Kind::Or:
    return any(lanes, type);
  case Lanes::Kind::Through:
    return through(lanes);
  }
  llvm_unreachable("all kinds are covered");
}

LiveMask mlir::autodiff::emitLanes(Adjoint &adjoint, const Lanes *lanes,
                                   Type type) {
  lanes = adjoint.seen(lanes);
  // Cotangents are zero in lanes that the analysis considers dead.
  return lanes->isNone() ? LiveMask{Value(), /*isExact=*/false}
                         : Emitter{adjoint}.emit(lanes, type);
}

/// Whether it may be a superset of the lanes that are live.
static bool isUnsure(const Lanes *lanes) {
  return lanes->isUnsure() || llvm::any_of(lanes->parts, isUnsure);
}

SmallVector<Value> mlir::autodiff::emitLanesOfResults(Adjoint &adjoint,
                                                      Operation *op) {
  SmallVector<const Lanes *> lanes;
  for (Value result : op->getResults())
    if (adjoint.get(result))
      lanes.push_back(adjoint.lanes.of(result));
  bool areSame =
      llvm::all_equal(lanes) && (lanes.size() < 2 || !isUnsure(lanes.front()));
  if (areSame || mutation::isMade("lanes:of results together"))
    return {};
  return llvm::map_to_vector(op->getResults(), [&](Value result) -> Value {
    Value cotangent = adjoint.get(result);
    if (!cotangent)
      return {};
    LiveMask mask =
        emitLanes(adjoint, adjoint.lanes.of(result), result.getType());
    if (mask.isExact || mutation::isMade("lanes:of results that are unsure"))
      return mask.condition;
    OpBuilder &b = adjoint.builder;
    return bothHold(b, adjoint.loc(), mask.condition,
                    findNonZero(b, adjoint.loc(), cotangent));
  });
}

Value mlir::autodiff::findNonZero(OpBuilder &b, Location loc,
                                  ValueRange cotangents) {
  Value found;
  for (Value cotangent : cotangents) {
    if (!cotangent)
      continue;
    Tile tile(b, loc, cotangent);
    Value here = compare(arith::CmpFPredicate::UNE, tile, tile.constant(0.0));
    found = found ? arith::OrIOp::create(b, loc, found, here) : here;
  }
  return found;
}

Tile mlir::autodiff::onlyLive(Tile value, ValueRange cotangents,
                              LiveMask mask) {
  if (mutation::isMade("lanes:those that are not live, too"))
    return value;
  if (mask.condition)
    value = where(mask.condition, value, value.constant(0.0));
  if (mask.isExact)
    return value;
  Tile live = where(findNonZero(value.b(), value.loc(), cotangents), value,
                    value.constant(0.0));
  markUnlessZero(live);
  return live;
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

void Factors::add(Value value, Value primal) {
  if (isFloat(value.getType()))
    isFinite.insert({value, adjoint.isFiniteElsewhere(primal)});
}

bool Factors::giveFinite(Value product) const {
  return isFiniteEverywhere(product, [&](Value value) -> std::optional<bool> {
    if (auto known = isFinite.find(value); known != isFinite.end())
      return known->second;
    // It is zero where a cotangent is.
    if (Value cotangent = findUnlessZero(value))
      if (isFinite.lookup(cotangent))
        return true;
    return std::nullopt;
  });
}
