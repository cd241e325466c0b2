//===- LoopReversal.cpp - What for and while loops have in common ---------===//
#include "LoopReversal.h"

#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

Value LoopReversal::integer(Type type, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

/// increment · iteration. Offsets of pointers are `wide`: a multiple of the
/// increment may need 64 bits where the increment does not.
Value LoopReversal::scaled(Value increment, Value iteration, bool wide) {
  Type element = getElementTypeOrSelf(increment.getType());
  Type target = wide ? b.getI64Type() : element;
  auto tensor = dyn_cast<RankedTensorType>(increment.getType());
  Value factor = castInteger(b, loc, iteration, target);
  if (!tensor)
    return arith::MulIOp::create(b, loc, factor,
                                 castInteger(b, loc, increment, target));
  auto wideTensor = tensor.clone(target);
  // If the increment is uniform, multiply scalars instead of tiles.
  DenseElementsAttr constant;
  if (matchPattern(increment, m_Constant(&constant)) && constant.isSplat()) {
    Value scalar = arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(element, constant.getSplatValue<APInt>()));
    return triton::SplatOp::create(b, loc, wideTensor,
                                   scaled(scalar, iteration, wide));
  }
  if (auto splat = increment.getDefiningOp<triton::SplatOp>())
    return triton::SplatOp::create(b, loc, wideTensor,
                                   scaled(splat.getSrc(), iteration, wide));
  Value tile = castInteger(b, loc, increment, target);
  Value factors = triton::SplatOp::create(b, loc, wideTensor, factor);
  return arith::MulIOp::create(b, loc, tile, factors);
}

/// The value that every iteration adds to a carried value, if it is the same in
/// all. Null with `isAffine` if the carried value does not change.
static Value findIncrement(LoopLikeOpInterface loop, Value argument, Value next,
                           bool &isAffine) {
  isAffine = next == argument;
  Operation *update = next.getDefiningOp();
  if (isAffine || !update || !isa<arith::AddIOp, triton::AddPtrOp>(update))
    return {};
  bool first = update->getOperand(0) == argument;
  if (!first &&
      (isa<triton::AddPtrOp>(update) || update->getOperand(1) != argument))
    return {};
  Value increment = update->getOperand(first ? 1 : 0);
  isAffine = loop.isDefinedOutsideOfLoop(increment);
  return isAffine ? increment : Value();
}

/// The value at the start of an iteration of a carried value that is affine,
/// init + increment · iteration.
Value LoopReversal::affineValue(unsigned index, Value iteration) {
  bool isAffine;
  Value increment = findIncrement(op, carried[index], nexts[index], isAffine);
  Value init = adjoint.primal(inits[index]);
  if (!increment)
    return init;
  bool isAddPtr = isa<triton::AddPtrOp>(nexts[index].getDefiningOp());
  Value offset = scaled(adjoint.primal(increment), iteration, isAddPtr);
  if (isAddPtr)
    return triton::AddPtrOp::create(b, loc, init.getType(), init, offset);
  return arith::AddIOp::create(b, loc, init, offset);
}

/// Lets the backward load a carried value from where the forward stored it, if
/// a store is marked (StoredStates.h). Adds the check. False if no store is.
bool LoopReversal::addState(unsigned index) {
  auto loop = dyn_cast<scf::ForOp>(op.getOperation());
  StoredState state = loop ? findMarkedState(loop, index) : StoredState();
  if (!state.store)
    return false;
  states.insert({index, state});
  // A region that is being built may not be attached to the backward yet.
  auto output = cast<BlockArgument>(
      adjoint.primal(getBaseArgument(state.store.getPtr())));
  auto backward = cast<triton::FuncOp>(output.getOwner()->getParentOp());
  if (!mutation::isMade("states:no check that they are there"))
    PlanOp::getOrCreate(backward->getParentOfType<ModuleOp>())
        .require(backward.getArgAttrOfType<OperandAttr>(output.getArgNumber(),
                                                        kOperandAttr),
                 getStateCheck(state));
  return true;
}

void LoopReversal::classify() {
  for (unsigned index = 0; index < carried.size(); ++index) {
    bool isAffine;
    findIncrement(op, carried[index], nexts[index], isAffine);
    if (!isAffine && !addState(index))
      general.push_back(index);
    if (adjoint.isActive(carried[index]))
      active.push_back(index);
  }
  captures = adjoint.getActiveCaptures(op->getRegions());
}

//===----------------------------------------------------------------------===//
// Recording
//===----------------------------------------------------------------------===//

SmallVector<unsigned> LoopReversal::newTapes() {
  return llvm::map_to_vector(general,
                             [&](unsigned) { return adjoint.newTape(); });
}

SmallVector<Value> LoopReversal::pop(Value entry, ArrayRef<unsigned> tapes) {
  SmallVector<Value> values;
  if (mutation::isMade("place-tapes:always the first entry"))
    entry = integer(entry.getType(), 0);
  for (auto [index, tape] : llvm::zip_equal(general, tapes))
    values.push_back(
        PopOp::create(b, loc, carried[index].getType(), entry, tape));
  return values;
}

/// Records the carried values of the recomputed loop at the start of its
/// iterations, or of every `interval`-th one if that is not null.
void LoopReversal::recordPrimal(Value interval, ArrayRef<unsigned> tapes,
                                ExprAttr entries) {
  Operation *loop = adjoint.primals.lookup(op.getOperation());
  Block &recording =
      loop->getRegion(body->getParent()->getRegionNumber()).front();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&recording);
  Value entry = iterationNumber(b, loc, loop);
  if (interval) {
    Value rest = arith::RemUIOp::create(b, loc, entry, interval);
    Value isCheckpoint = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq, rest, integer(rest.getType(), 0));
    entry = arith::DivUIOp::create(b, loc, entry, interval);
    auto branch = scf::IfOp::create(b, loc, isCheckpoint);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  for (auto [index, tape] : llvm::zip_equal(general, tapes)) {
    unsigned argument = cast<BlockArgument>(carried[index]).getArgNumber();
    PushOp::create(b, loc, recording.getArgument(argument), entry, tape,
                   entries);
  }
}

/// Binds values that depend on nothing but an iteration's number.
void LoopReversal::bindPlace(Value iteration) {
  bindInduction(iteration);
  for (unsigned index = 0; index < carried.size(); ++index)
    if (!llvm::is_contained(general, index) && !states.contains(index))
      adjoint.primals.map(carried[index], affineValue(index, iteration));
}

/// The carried value at the start of an iteration, loaded from where that
/// iteration, or the one before it, has stored it. For the first iteration, and
/// masked lanes, nothing has been stored.
Value LoopReversal::readState(unsigned index, Value iteration) {
  auto [store, isBefore] = states.lookup(index);
  Value mask, place = iteration;
  auto both = [&](Value condition) {
    mask = bothHold(b, loc, mask, condition);
  };
  if (store.getMask())
    both(adjoint.primal(store.getMask()));
  if (!isBefore) {
    Value zero = integer(iteration.getType(), 0);
    Value isLater = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                          iteration, zero);
    if (auto tile = dyn_cast<RankedTensorType>(carried[index].getType()))
      isLater =
          triton::SplatOp::create(b, loc, tile.clone(b.getI1Type()), isLater);
    both(isLater);
    if (!mutation::isMade("states:read one iteration late"))
      place = arith::SubIOp::create(b, loc, iteration,
                                    integer(iteration.getType(), 1));
  }
  bindPlace(place);
  auto computing =
      findPlace(cast<scf::ForOp>(op.getOperation()), store.getPtr());
  for (Operation *op : *computing)
    adjoint.clone(*op);
  Value state = triton::LoadOp::create(
      b, store.getLoc(), adjoint.primal(store.getPtr()), mask, Value());
  state = castFloat(b, loc, state, getElementTypeOrSelf(carried[index]));
  if (!mask)
    return state;
  return arith::SelectOp::create(b, loc, mask, state,
                                 adjoint.primal(inits[index]));
}

/// Binds the forward's values at the start of an iteration.
void LoopReversal::bindIteration(Value iteration, ValueRange values) {
  SmallVector<Value> read;
  for (auto &[index, state] : states)
    read.push_back(readState(index, iteration));
  bindPlace(iteration);
  for (auto [entry, value] : llvm::zip_equal(states, read))
    adjoint.primals.map(carried[entry.first], value);
  for (auto [index, value] : llvm::zip_equal(general, values))
    adjoint.primals.map(carried[index], value);
}

/// Runs `length` iterations from a checkpoint, and records them.
SmallVector<unsigned> LoopReversal::recordChunk(Value start, Value length,
                                                ValueRange values,
                                                ExprAttr entries) {
  SmallVector<unsigned> tapes = newTapes();
  Type type = length.getType();
  auto loop = scf::ForOp::create(b, loc, integer(type, 0), length,
                                 integer(type, 1), values);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value place = loop.getInductionVar();
  for (auto [value, tape] : llvm::zip_equal(loop.getRegionIterArgs(), tapes))
    PushOp::create(b, loc, value, place, tape, entries);
  bindIteration(arith::AddIOp::create(b, loc, start, place),
                loop.getRegionIterArgs());
  adjoint.recompute(*body);
  SmallVector<Value> next;
  for (unsigned index : general)
    next.push_back(adjoint.primal(nexts[index]));
  if (!next.empty())
    scf::YieldOp::create(b, loc, next);
  return tapes;
}

//===----------------------------------------------------------------------===//
// Reversing
//===----------------------------------------------------------------------===//

/// Takes the adjoints, after an iteration, of the active carried values and of
/// the captures, and returns those before the iteration. The forward's values
/// at its start are bound.
FailureOr<SmallVector<Value>>
LoopReversal::reverseIteration(ValueRange adjoints) {
  adjoint.recompute(*body);
  SmallVector<Value> tracked;
  for (unsigned index : active)
    tracked.push_back(carried[index]);
  tracked.append(captures);
  FailureOr<SmallVector<Value>> before = adjoint.scoped(tracked, [&] {
    for (auto [capture, value] :
         llvm::zip(captures, adjoints.drop_front(active.size())))
      adjoint.set(capture, value);
    for (auto [index, value] : llvm::zip(active, adjoints))
      adjoint.add(nexts[index], value);
    return adjoint.reverse(*body);
  });
  if (failed(before))
    return failure();
  for (auto [value, primal] : llvm::zip_equal(*before, tracked))
    if (!value)
      value = adjoint.constant(primal.getType(), 0.0);
  return before;
}

/// A loop that calls `reverse` with the numbers count − 1 … 0.
FailureOr<SmallVector<Value>>
LoopReversal::loopBackwards(Value count, ValueRange adjoints, Body reverse) {
  Type type = count.getType();
  auto loop = scf::ForOp::create(b, loc, integer(type, 0), count,
                                 integer(type, 1), adjoints);
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  loop->removeDiscardableAttr(kCounterAttr);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value last = arith::SubIOp::create(b, loc, count, integer(type, 1));
  Value number = arith::SubIOp::create(b, loc, last, loop.getInductionVar());
  if (mutation::isMade("loop:iterations in forward order"))
    number = loop.getInductionVar();
  FailureOr<SmallVector<Value>> before =
      reverse(number, loop.getRegionIterArgs());
  if (failed(before))
    return failure();
  if (!adjoints.empty())
    scf::YieldOp::create(b, loc, *before);
  return SmallVector<Value>(loop.getResults());
}

/// Reverses the iterations start … start + length − 1 (`start` null for 0),
/// which are recorded.
FailureOr<SmallVector<Value>>
LoopReversal::reverseRange(Value start, Value length, ArrayRef<unsigned> tapes,
                           ValueRange adjoints) {
  return loopBackwards(length, adjoints, [&](Value place, ValueRange after) {
    Value iteration =
        start ? Value(arith::AddIOp::create(b, loc, start, place)) : place;
    bindIteration(iteration, pop(place, tapes));
    return reverseIteration(after);
  });
}

LogicalResult LoopReversal::run(Value count) {
  classify();
  SmallVector<Value> after;
  auto addStart = [&](Value primal) {
    Value adjointSoFar = adjoint.get(primal);
    after.push_back(adjointSoFar ? adjointSoFar
                                 : adjoint.constant(primal.getType(), 0.0));
  };
  for (unsigned index : active)
    addStart(op->getResult(index));
  for (Value capture : captures)
    addStart(capture);

  ExprAttr most = mostIterations(op);
  SmallVector<unsigned> tapes = newTapes();
  FailureOr<SmallVector<Value>> before;
  bool checkpoint = op->getParentOfType<ModuleOp>()->hasAttr(kCheckpointAttr);
  if (!checkpoint || general.empty() || !most) {
    recordPrimal(Value(), tapes, most);
    before = reverseRange(Value(), count, tapes, after);
  } else {
    // C = ⌊√n⌋ + 1 for the most iterations n, so that C·C > n.
    ExprAttr entries = addOf(ExprAttr::get(ExprKind::SquareRoot, most), 1);
    Type type = count.getType();
    Value interval = castInteger(b, loc, SizeOp::create(b, loc, entries), type);
    // The recomputed loop is further up, and so must be its interval.
    Operation *loop = adjoint.primals.lookup(op.getOperation());
    OpBuilder early(loop);
    Value recorded =
        castInteger(early, loc, SizeOp::create(early, loc, entries), type);
    recordPrimal(recorded, tapes, entries);
    Value most = arith::SubIOp::create(b, loc, interval, integer(type, 1));
    Value chunks = arith::DivUIOp::create(
        b, loc, arith::AddIOp::create(b, loc, count, most), interval);
    before = loopBackwards(chunks, after, [&](Value chunk, ValueRange after) {
      Value start = arith::MulIOp::create(b, loc, chunk, interval);
      Value rest = arith::SubIOp::create(b, loc, count, start);
      Value length = arith::MinSIOp::create(b, loc, rest, interval);
      SmallVector<unsigned> inner =
          recordChunk(start, length, pop(chunk, tapes), entries);
      return reverseRange(start, length, inner, after);
    });
  }
  if (failed(before))
    return failure();
  // The adjoints of captures were initial values, so results replace them.
  ArrayRef<Value> results = *before;
  for (auto [capture, result] :
       llvm::zip(captures, results.drop_front(active.size())))
    adjoint.set(capture, result);
  for (auto [index, result] : llvm::zip(active, results))
    adjoint.add(inits[index], result);
  return success();
}
