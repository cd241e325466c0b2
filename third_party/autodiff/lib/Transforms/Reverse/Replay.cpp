//===- Replay.cpp - Run a loop again in place of its tapes ----------------===//
//
// The value that a loop carries at the start of iteration n is its result if it
// runs n iterations. So where a tape is read, a copy of the loop runs that far.
// For n iterations that is n²/2 in all, but no memory is needed. Loops of few
// iterations are unrolled instead (ShortLoops.cpp).
//
//===----------------------------------------------------------------------===//
#include "Recordings.h"
#include "ShortLoops.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_REPLAY
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// The pops of one loop's tapes that are at the same place.
struct Reading {
  SmallVector<std::pair<PushOp, PopOp>> tapes;
};

struct Replay : autodiff::impl::ReplayBase<Replay> {
  void runOnOperation() override;
  LogicalResult replayAll(triton::FuncOp backward);
};
} // namespace

static void dropPushes(Operation *loop) {
  loop->walk([](PushOp push) { push.erase(); });
}

/// A for loop with the first `count` iterations of a loop.
static scf::ForOp repeat(OpBuilder &b, scf::ForOp loop, Value count) {
  Location loc = loop.getLoc();
  Value span = arith::MulIOp::create(b, loc, count, loop.getStep());
  Value end = arith::AddIOp::create(b, loc, loop.getLowerBound(), span);
  auto copy = cast<scf::ForOp>(b.clone(*loop));
  copy.setUpperBound(end);
  dropPushes(copy);
  return copy;
}

/// The same for a while loop in the form of autodiff-normalize: a for loop,
/// with results for the while loop's initial values.
static scf::ForOp repeat(OpBuilder &b, scf::WhileOp loop, Value count) {
  Location loc = loop.getLoc();
  Value zero = integerOf(b, loc, count.getType(), 0);
  Value one = integerOf(b, loc, count.getType(), 1);
  auto copy = scf::ForOp::create(b, loc, zero, count, one, loop.getInits());
  IRMapping map;
  map.map(loop.getBeforeArguments(), copy.getRegionIterArgs());
  for (auto [passed, after] : llvm::zip_equal(loop.getConditionOp().getArgs(),
                                              loop.getAfterArguments()))
    map.map(after, map.lookupOrDefault(passed));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  for (Operation &op : loop.getAfterBody()->without_terminator())
    b.clone(op, map);
  dropPushes(copy);
  SmallVector<Value> next;
  for (Value value : loop.getYieldedValues())
    next.push_back(map.lookupOrDefault(value));
  if (!next.empty())
    scf::YieldOp::create(b, loc, next);
  return copy;
}

/// The value of `value`, an argument of the body of `loop`, after the
/// iterations of `copy`. If it is the same in all iterations, `value` itself;
/// else null.
static Value findAfter(Value value, Operation *loop, scf::ForOp copy) {
  if (cast<LoopLikeOpInterface>(loop).isDefinedOutsideOfLoop(value))
    return value;
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner()->getParentOp() != loop)
    return {};
  if (auto counted = dyn_cast<scf::ForOp>(loop))
    return argument == counted.getInductionVar()
               ? Value()
               : copy.getTiedLoopResult(
                     copy.getRegionIterArg(argument.getArgNumber() - 1));
  auto found = cast<scf::WhileOp>(loop);
  Value passed = found.getConditionOp().getArgs()[argument.getArgNumber()];
  if (found.isDefinedOutsideOfLoop(passed))
    return passed;
  auto carried = dyn_cast<BlockArgument>(passed);
  return carried ? copy.getResult(carried.getArgNumber()) : Value();
}

/// Whether a copy of `loop` can run up to `count` in front of `pop`.
static bool canRepeat(Operation *loop, PopOp pop) {
  Type count = pop.getIteration().getType();
  Operation *reader = loop->getBlock()->findAncestorOpInBlock(*pop);
  if (!reader || reader == loop || reader->isBeforeInBlock(loop))
    return false;
  if (auto counted = dyn_cast<scf::ForOp>(loop))
    return counted.getStep().getType() == count;
  auto found = dyn_cast<scf::WhileOp>(loop);
  return found && llvm::hasSingleElement(*found.getBeforeBody());
}

static LogicalResult replay(Operation *loop, const Reading &reading) {
  PopOp first = reading.tapes.front().second;
  if (!canRepeat(loop, first))
    return first.emitError("reads what no loop before it records that can be "
                           "run again (autodiff-normalize gives it the form)");
  for (auto [push, pop] : reading.tapes)
    if (pop->isBeforeInBlock(first))
      first = pop;
  OpBuilder b(first);
  Value count = first.getIteration();
  if (mutation::isMade("replay:no iterations"))
    count = integerOf(b, first.getLoc(), count.getType(), 0);
  scf::ForOp copy = isa<scf::ForOp>(loop)
                        ? repeat(b, cast<scf::ForOp>(loop), count)
                        : repeat(b, cast<scf::WhileOp>(loop), count);
  copy->removeDiscardableAttr(kCounterAttr);
  for (auto [push, pop] : reading.tapes) {
    Value value = findAfter(push.getValue(), loop, copy);
    if (!value || value.getType() != pop.getType())
      return push.emitError("records what its loop does not carry");
    pop.replaceAllUsesWith(value);
    pop.erase();
  }
  return success();
}

LogicalResult Replay::replayAll(triton::FuncOp backward) {
  FailureOr<Recordings> recordings;
  do {
    recordings = collectRead(backward, [&](OpPassManager &pipeline) {
      return runPipeline(pipeline, backward);
    });
    if (failed(recordings))
      return failure();
  } while (takeShortLoopsApart(*recordings));
  using Place = std::tuple<Operation *, Block *, Value>;
  llvm::MapVector<Place, Reading> readings;
  for (auto &[tape, recording] : *recordings) {
    PushOp push = recording.push;
    for (PopOp pop : recording.pops) {
      if (!push)
        return pop.emitError("reads what no loop of the backward records");
      readings[{recording.loop(), pop->getBlock(), pop.getIteration()}]
          .tapes.push_back({push, pop});
    }
  }
  for (auto &[place, reading] : readings)
    if (failed(replay(std::get<Operation *>(place), reading)))
      return failure();
  dropPushes(backward);
  return success();
}

void Replay::runOnOperation() {
  for (triton::FuncOp backward : getBackwards(getOperation()))
    if (failed(replayAll(backward)))
      return signalPassFailure();
}
