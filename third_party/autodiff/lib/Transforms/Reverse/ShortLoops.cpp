//===- ShortLoops.cpp - Loops of few iterations, taken apart --------------===//
#include "ShortLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

/// More would be too much code, and too many values in registers.
static constexpr int64_t kMostIterations = 8, kMostOperations = 1000;

namespace {
/// A loop that records values, and the loop that reads them.
struct Pair {
  scf::ForOp recording, reading;
  int64_t count;
};
} // namespace

static std::optional<int64_t> findCount(scf::ForOp loop) {
  APInt lower, upper, step;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)) || !lower.isZero() ||
      !step.isOne() || upper.isNegative())
    return std::nullopt;
  return upper.getSExtValue();
}

/// The iteration of `loop` whose record `pop` reads in its own first iteration;
/// each later one reads the iteration before that.
static std::optional<int64_t> findFirst(PopOp pop, scf::ForOp loop) {
  auto number = pop.getIteration().getDefiningOp<arith::SubIOp>();
  APInt first;
  if (!number || number.getRhs() != loop.getInductionVar() ||
      !matchPattern(number.getLhs(), m_ConstantInt(&first)))
    return std::nullopt;
  return first.getSExtValue();
}

static int64_t countOperations(scf::ForOp loop) {
  int64_t count = 0;
  loop->walk([&](Operation *) { ++count; });
  return count;
}

/// Whether a loop only records values of its own body.
static bool isInnermost(scf::ForOp loop) {
  WalkResult walk = loop->walk([&](Operation *op) {
    bool isInner = isa<PushOp, PopOp>(op) && op->getBlock() != loop.getBody();
    return isInner ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !walk.wasInterrupted();
}

static std::optional<Pair> findPair(Recording &recording) {
  auto loop = dyn_cast_or_null<scf::ForOp>(recording.loop());
  auto reading = dyn_cast<scf::ForOp>(recording.pops.front()->getParentOp());
  if (!loop || !reading || loop->getBlock() != reading->getBlock() ||
      !loop->isBeforeInBlock(reading))
    return std::nullopt;
  std::optional<int64_t> count = findCount(loop);
  if (!count || *count > kMostIterations || findCount(reading) != count ||
      *count * (countOperations(loop) + countOperations(reading)) >
          kMostOperations ||
      !isInnermost(loop) || !isInnermost(reading))
    return std::nullopt;
  return Pair{loop, reading, *count};
}

/// Whether one loop only records its carried values, and the other one reads
/// them in reverse order.
static bool fit(Pair pair, Recordings &recordings) {
  for (auto &[tape, recording] : recordings) {
    bool isRecorded = recording.push && recording.loop() == pair.recording;
    for (PopOp pop : recording.pops) {
      bool isRead = pop->getParentOp() == pair.reading;
      if (isRecorded != isRead)
        return false;
      std::optional<int64_t> first = findFirst(pop, pair.reading);
      if (isRead && (!first || *first != pair.count - 1))
        return false;
    }
    if (!isRecorded)
      continue;
    Value value = recording.push.getValue();
    if (!llvm::is_contained(pair.recording.getRegionIterArgs(), value))
      return false;
  }
  return true;
}

/// Unrolls a loop; returns, for each iteration, the values of its induction
/// variable and carried values at its start. `read` gives the values that are
/// read in an iteration.
static SmallVector<IRMapping>
takeApart(scf::ForOp loop, int64_t count,
          llvm::function_ref<Value(PopOp pop, int64_t iteration)> read) {
  OpBuilder b(loop);
  SmallVector<IRMapping> starts;
  SmallVector<Value> carried(loop.getInitArgs());
  for (int64_t iteration = 0; iteration < count; ++iteration) {
    IRMapping map;
    map.map(loop.getRegionIterArgs(), carried);
    map.map(loop.getInductionVar(),
            arith::ConstantOp::create(
                b, loop.getLoc(),
                b.getIntegerAttr(loop.getInductionVar().getType(), iteration)));
    starts.push_back(map);
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (auto pop = dyn_cast<PopOp>(op))
        map.map(pop.getResult(), read(pop, iteration));
      else if (!isa<PushOp>(op))
        b.clone(op, map);
    }
    carried = llvm::map_to_vector(loop.getYieldedValues(), [&](Value value) {
      return map.lookupOrDefault(value);
    });
  }
  loop.replaceAllUsesWith(carried);
  return starts;
}

bool mlir::autodiff::takeShortLoopsApart(Recordings &recordings) {
  for (auto &[tape, recording] : recordings) {
    std::optional<Pair> pair = findPair(recording);
    if (!pair || !fit(*pair, recordings))
      continue;
    llvm::DenseMap<unsigned, Value> recorded;
    for (auto &[number, each] : recordings)
      if (each.push && each.loop() == pair->recording)
        recorded[number] = each.push.getValue();
    SmallVector<IRMapping> starts =
        takeApart(pair->recording, pair->count,
                  [](PopOp pop, int64_t) { return pop.getResult(); });
    takeApart(pair->reading, pair->count, [&](PopOp pop, int64_t iteration) {
      return starts[pair->count - 1 - iteration].lookup(
          recorded.lookup(pop.getTape()));
    });
    pair->reading.erase();
    pair->recording.erase();
    return true;
  }
  return false;
}
