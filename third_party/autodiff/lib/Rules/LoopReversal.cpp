//===- LoopReversal.cpp - What for and while loops have in common ---------===//
#include "LoopReversal.h"

#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

Value LoopReversal::integer(Type type, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

static Value convertInteger(OpBuilder &b, Location loc, Value value,
                            Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from < to)
    return arith::ExtSIOp::create(b, loc, type, value);
  if (from > to)
    return arith::TruncIOp::create(b, loc, type, value);
  return value;
}

/// increment · iteration. Pointer offsets are `wide`: the sum of increments
/// may need 64 bits where one increment does not.
Value LoopReversal::scaled(Value increment, Value iteration, bool wide) {
  Type element = getElementTypeOrSelf(increment.getType());
  Type target = wide ? b.getI64Type() : element;
  auto tensor = dyn_cast<RankedTensorType>(increment.getType());
  Value factor = convertInteger(b, loc, iteration, target);
  if (!tensor)
    return arith::MulIOp::create(b, loc, factor,
                                 convertInteger(b, loc, increment, target));
  auto wideTensor = tensor.clone(target);
  // Multiply scalars, not tiles, where the increment is uniform.
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
  Value tile = increment;
  if (target != element)
    tile = arith::ExtSIOp::create(b, loc, wideTensor, increment);
  Value factors = triton::SplatOp::create(b, loc, wideTensor, factor);
  return arith::MulIOp::create(b, loc, tile, factors);
}

/// The carried value at the start of an iteration if every iteration adds the
/// same to it; null otherwise.
Value LoopReversal::affineValue(unsigned index, Value iteration) {
  Value argument = carried[index], next = nexts[index];
  Value init = adjoint.primal(inits[index]);
  if (next == argument)
    return init;
  Operation *update = next.getDefiningOp();
  if (!update || !isa<arith::AddIOp, triton::AddPtrOp>(update))
    return {};
  bool first = update->getOperand(0) == argument;
  if (!first &&
      (isa<triton::AddPtrOp>(update) || update->getOperand(1) != argument))
    return {};
  Value increment = update->getOperand(first ? 1 : 0);
  if (!op.isDefinedOutsideOfLoop(increment))
    return {};
  bool isAddPtr = isa<triton::AddPtrOp>(update);
  Value offset = scaled(adjoint.primal(increment), iteration, isAddPtr);
  if (isAddPtr)
    return triton::AddPtrOp::create(b, loc, init.getType(), init, offset);
  return arith::AddIOp::create(b, loc, init, offset);
}

/// Records a carried value at the start of each iteration of the recomputed
/// loop.
void LoopReversal::push(unsigned index, unsigned tape) {
  Operation *loop = adjoint.primals.lookup(op.getOperation());
  Block *recording =
      &loop->getRegion(body->getParent()->getRegionNumber()).front();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(recording);
  Value iteration = iterationNumber(b, loc, loop);
  StringAttr entries;
  if (std::optional<llvm::json::Value> most = mostIterations(op))
    entries = toAttribute(b.getContext(), std::move(*most));
  unsigned argument = cast<BlockArgument>(carried[index]).getArgNumber();
  PushOp::create(b, loc, recording->getArgument(argument), iteration, tape,
                 entries);
}

void LoopReversal::bindCarried(unsigned index, Value iteration) {
  Value value = affineValue(index, iteration);
  if (!value) {
    unsigned tape = adjoint.newTape();
    push(index, tape);
    value = PopOp::create(b, loc, carried[index].getType(), iteration, tape);
  }
  adjoint.primals.map(carried[index], value);
}

/// Given the adjoints after an iteration, of the active carried values and of
/// the captures, returns those before it.
FailureOr<SmallVector<Value>>
LoopReversal::reverseIteration(Value iteration, ValueRange adjoints) {
  bindInduction(iteration);
  for (unsigned index = 0; index < carried.size(); ++index)
    bindCarried(index, iteration);
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

LogicalResult LoopReversal::run(Value count) {
  for (unsigned index = 0; index < carried.size(); ++index)
    if (adjoint.isActive(carried[index]))
      active.push_back(index);
  captures = adjoint.getActiveCaptures(op->getRegions());
  SmallVector<Value> starts;
  auto addStart = [&](Value primal) {
    Value adjointSoFar = adjoint.get(primal);
    starts.push_back(adjointSoFar ? adjointSoFar
                                  : adjoint.constant(primal.getType(), 0.0));
  };
  for (unsigned index : active)
    addStart(op->getResult(index));
  for (Value capture : captures)
    addStart(capture);

  Type type = count.getType();
  auto loop = scf::ForOp::create(b, loc, integer(type, 0), count,
                                 integer(type, 1), starts);
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value last = arith::SubIOp::create(b, loc, count, integer(type, 1));
  Value iteration = arith::SubIOp::create(b, loc, last, loop.getInductionVar());
  FailureOr<SmallVector<Value>> adjoints =
      reverseIteration(iteration, loop.getRegionIterArgs());
  if (failed(adjoints))
    return failure();
  if (!starts.empty())
    scf::YieldOp::create(b, loc, *adjoints);

  b.setInsertionPointAfter(loop);
  // Captures started from their adjoints so far: the results replace those.
  for (auto [capture, result] :
       llvm::zip(captures, loop.getResults().drop_front(active.size())))
    adjoint.set(capture, result);
  for (auto [index, result] : llvm::zip(active, loop.getResults()))
    adjoint.add(inits[index], result);
  return success();
}
