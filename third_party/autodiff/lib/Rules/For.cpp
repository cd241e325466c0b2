//===- For.cpp - Counted loops --------------------------------------------===//
//
// The reversed loop runs the iterations backwards. Each iteration recomputes
// its primal values from what the loop carried at its start, then reverses the
// body. Carried values are found again by their class: affine ones (counters,
// pointers) from the iteration's number; the others are popped from a tape that
// the recomputed primal loop pushes. A tape that no adjoint reads disappears
// again (Tape.cpp), which is what happens to accumulators.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/RuleTable.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
class ForReversal {
public:
  ForReversal(scf::ForOp op, Adjoint &adjoint)
      : op(op), adjoint(adjoint), b(adjoint.builder), loc(adjoint.loc()),
        lower(adjoint.primal(op.getLowerBound())),
        step(adjoint.primal(op.getStep())), counter(lower.getType()) {}

  LogicalResult run();

private:
  Value tripCount();
  Value inductionValue(Value iteration);
  void bindCarried(unsigned index, Value iteration);
  Value affineValue(unsigned index, Value iteration);
  Value scaled(Value increment, Value iteration, bool wide);
  void push(BlockArgument carried, unsigned tape);
  Value integer(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(counter, value));
  }

  scf::ForOp op;
  Adjoint &adjoint;
  OpBuilder &b;
  Location loc;
  Value lower, step;
  Type counter;
};
} // namespace

/// max(0, ceil((upper - lower) / step)); a step is positive.
Value ForReversal::tripCount() {
  Value upper = adjoint.primal(op.getUpperBound());
  Value span = arith::SubIOp::create(b, loc, upper, lower);
  Value last = arith::SubIOp::create(b, loc, step, integer(1));
  Value rounded = arith::AddIOp::create(b, loc, span, last);
  Value count = arith::DivSIOp::create(b, loc, rounded, step);
  return arith::MaxSIOp::create(b, loc, count, integer(0));
}

Value ForReversal::inductionValue(Value iteration) {
  Value offset = arith::MulIOp::create(b, loc, iteration, step);
  return arith::AddIOp::create(b, loc, lower, offset);
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
Value ForReversal::scaled(Value increment, Value iteration, bool wide) {
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
Value ForReversal::affineValue(unsigned index, Value iteration) {
  BlockArgument carried = op.getRegionIterArg(index);
  Value next = op.getYieldedValues()[index];
  Value init = adjoint.primal(op.getInitArgs()[index]);
  if (next == carried)
    return init;
  Operation *update = next.getDefiningOp();
  if (!update || !isa<arith::AddIOp, triton::AddPtrOp>(update))
    return {};
  bool first = update->getOperand(0) == carried;
  if (!first &&
      (isa<triton::AddPtrOp>(update) || update->getOperand(1) != carried))
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

/// Records `carried` at the start of each iteration of the recomputed loop.
void ForReversal::push(BlockArgument carried, unsigned tape) {
  auto primalLoop = cast<scf::ForOp>(adjoint.primals.lookup(op.getOperation()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(primalLoop.getBody());
  Value distance = arith::SubIOp::create(b, loc, primalLoop.getInductionVar(),
                                         primalLoop.getLowerBound());
  Value iteration =
      arith::DivSIOp::create(b, loc, distance, primalLoop.getStep());
  PushOp::create(b, loc,
                 primalLoop.getRegionIterArg(carried.getArgNumber() - 1),
                 iteration, tape, StringAttr());
}

void ForReversal::bindCarried(unsigned index, Value iteration) {
  BlockArgument carried = op.getRegionIterArg(index);
  Value value = affineValue(index, iteration);
  if (!value) {
    unsigned tape = adjoint.newTape();
    push(carried, tape);
    value = PopOp::create(b, loc, carried.getType(),
                          mutation::isMade("tape:always the first entry")
                              ? integer(0)
                              : iteration,
                          tape);
  }
  adjoint.primals.map(carried, value);
}

LogicalResult ForReversal::run() {
  SmallVector<unsigned> carried;
  for (unsigned index = 0; index < op.getNumRegionIterArgs(); ++index)
    if (adjoint.isActive(op.getRegionIterArg(index)))
      carried.push_back(index);
  SmallVector<Value> captures = adjoint.getActiveCaptures(op->getRegions());

  SmallVector<Value> inits;
  auto addInit = [&](Value primal) {
    Value adjointSoFar = adjoint.get(primal);
    inits.push_back(adjointSoFar ? adjointSoFar
                                 : adjoint.constant(primal.getType(), 0.0));
  };
  for (unsigned index : carried)
    addInit(op.getResult(index));
  for (Value capture : captures)
    addInit(capture);

  Value count = tripCount();
  auto loop = scf::ForOp::create(b, loc, integer(0), count, integer(1), inits);
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());

  Value last = arith::SubIOp::create(b, loc, count, integer(1));
  Value iteration = arith::SubIOp::create(b, loc, last, loop.getInductionVar());
  if (mutation::isMade("loop:iterations in forward order"))
    iteration = loop.getInductionVar();
  adjoint.primals.map(op.getInductionVar(), inductionValue(iteration));
  for (unsigned index = 0; index < op.getNumRegionIterArgs(); ++index)
    bindCarried(index, iteration);
  adjoint.recompute(*op.getBody());

  SmallVector<Value> tracked;
  for (unsigned index : carried)
    tracked.push_back(op.getRegionIterArg(index));
  tracked.append(captures);
  ValueRange adjointArgs = loop.getRegionIterArgs();
  FailureOr<SmallVector<Value>> adjoints = adjoint.scoped(tracked, [&] {
    for (auto [capture, arg] :
         llvm::zip(captures, adjointArgs.drop_front(carried.size())))
      adjoint.set(capture, arg);
    for (auto [index, arg] : llvm::zip(carried, adjointArgs))
      adjoint.add(op.getYieldedValues()[index], arg);
    return adjoint.reverse(*op.getBody());
  });
  if (failed(adjoints))
    return failure();
  for (auto [value, primal] : llvm::zip_equal(*adjoints, tracked))
    if (!value)
      value = adjoint.constant(primal.getType(), 0.0);
  if (!tracked.empty())
    scf::YieldOp::create(b, loc, *adjoints);

  b.setInsertionPointAfter(loop);
  // Captures started from their adjoints so far: the results replace those.
  for (auto [capture, result] :
       llvm::zip(captures, loop.getResults().drop_front(carried.size())))
    adjoint.set(capture, result);
  for (auto [index, result] : llvm::zip(carried, loop.getResults()))
    adjoint.add(op.getInitArgs()[index], result);
  return success();
}

static LogicalResult reverseFor(scf::ForOp op, Adjoint &adjoint) {
  return ForReversal(op, adjoint).run();
}

void mlir::autodiff::addForRules(RuleTable &table) {
  table.add<scf::ForOp>("iterations reversed in reverse order; carried primal "
                        "values from the iteration's number or a tape",
                        reverseFor);
}
