//===- RescaleAccumulators.cpp - Online softmax as plain sums -------------===//
//
// A loop carries a running maximum, m' = max(m, r), and accumulators that it
// keeps relative to it: A' = A·e^(δ(m−m')) + f(m'). Seen from any fixed M,
// Â = A·e^(δ(m−M)) the update is Â' = Â + f(M): the loop may as well use M from
// its first iteration to its last. With M = m after the loop, Â is A at the
// end.
//
// Where such a loop starts from what another one has left, in the frame of the
// maximum that it starts from, the other one uses M as well: A then goes from
// one to the other as it is (attention that masks in a second stage).
//
// That the body allows this change of frame is proved by its scaling degrees in
// two independent shifts, one of m and one of m': A must go in with −δ in the
// first and come out with −δ in the second, and nothing else may move.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/ScalingDegrees.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

#include <cmath>

namespace mlir::autodiff {
#define GEN_PASS_DEF_RESCALEACCUMULATORS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A loop with a running maximum and what is kept relative to it.
struct RescaledLoop {
  scf::ForOp loop;
  unsigned maximum = 0; // carried value
  Value next;           // m' in the body
  double delta = 0;
  /// For each carried value that is rescaled: the axes along which m runs.
  llvm::DenseMap<unsigned, SmallVector<unsigned, 2>> accumulators;
};

struct RescaleAccumulators
    : autodiff::impl::RescaleAccumulatorsBase<RescaleAccumulators> {
  void runOnOperation() override;
};
} // namespace

static SmallVector<unsigned> seedAxes(Type type) {
  SmallVector<unsigned> axes;
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    for (unsigned axis = 0; axis < tensor.getRank(); ++axis)
      axes.push_back(axis);
  return axes;
}

/// The value m' = max(m, r) that the loop carries on for a carried m.
static Value matchRunningMaximum(scf::ForOp loop, unsigned index) {
  Value next = loop.getYieldedValues()[index];
  Value current = loop.getRegionIterArg(index);
  Operation *op = next.getDefiningOp();
  if (!op || !isa<arith::MaximumFOp, arith::MaxNumFOp>(op) ||
      op->getBlock() != loop.getBody())
    return {};
  bool compares = op->getOperand(0) == current || op->getOperand(1) == current;
  return compares ? next : Value();
}

static ScalingDegrees seedShifts(RescaledLoop &candidate) {
  ScalingDegrees degrees;
  Value current = candidate.loop.getRegionIterArg(candidate.maximum);
  SmallVector<unsigned> axes = seedAxes(current.getType());
  degrees.seed(current, Degree::shifted({1, 0}, axes));
  degrees.seed(candidate.next, Degree::shifted({0, 1}, axes));
  for (unsigned index = 0; index < candidate.loop.getNumResults(); ++index)
    if (index != candidate.maximum)
      degrees.seed(candidate.loop.getRegionIterArg(index), Degree());
  return degrees;
}

/// The exponents δ of factors e^(δ(m−m')) in the body.
static SmallVector<double> findExponents(RescaledLoop &candidate) {
  ScalingDegrees degrees = seedShifts(candidate);
  SmallVector<double> found;
  candidate.loop.getBody()->walk([&](Operation *op) {
    if (!isa<math::ExpOp, math::Exp2Op>(op))
      return;
    std::optional<Degree> degree = degrees.of(op->getResult(0));
    if (degree && degree->isScale() && degree->scale[0] != 0 &&
        std::abs(degree->scale[0] + degree->scale[1]) < 1e-9 &&
        !llvm::is_contained(found, degree->scale[0]))
      found.push_back(degree->scale[0]);
  });
  return found;
}

/// Whether the loop changes frame with this δ; fills in its accumulators.
static bool proveFrame(RescaledLoop &candidate, double delta) {
  scf::ForOp loop = candidate.loop;
  unsigned count = loop.getNumResults();
  SmallVector<bool> rescaled(count);
  SmallVector<SmallVector<unsigned, 2>> axes(count);
  // Where m runs along an accumulator's axes is learnt from what is added.
  for (unsigned index = 0; index < count; ++index) {
    Type type = loop.getRegionIterArg(index).getType();
    rescaled[index] = index != candidate.maximum && isFloat(type);
    axes[index] = SmallVector<unsigned, 2>(
        seedAxes(loop.getRegionIterArg(candidate.maximum).getType()));
  }
  for (bool changed = true; changed;) {
    changed = false;
    ScalingDegrees degrees = seedShifts(candidate);
    for (unsigned index = 0; index < count; ++index)
      if (rescaled[index])
        degrees.seed(loop.getRegionIterArg(index),
                     Degree::scaled({-delta, 0}, axes[index]));
    for (unsigned index = 0; index < count; ++index) {
      if (index == candidate.maximum)
        continue;
      std::optional<Degree> next = degrees.of(loop.getYieldedValues()[index]);
      if (rescaled[index]) {
        bool holds = next && next->isScale() &&
                     std::abs(next->scale[0]) < 1e-9 &&
                     std::abs(next->scale[1] + delta) < 1e-9 &&
                     next->axes == axes[index];
        if (!holds && !mutation::isMade("rescale:any accumulator")) {
          rescaled[index] = false;
          changed = true;
        }
      } else if (!next || !next->isInvariant()) {
        return false;
      }
    }
    if (!changed && !degrees.hasInvariantEffects(loop))
      return false;
  }
  for (unsigned index = 0; index < count; ++index)
    if (rescaled[index])
      candidate.accumulators[index] = axes[index];
  candidate.delta = delta;
  return !candidate.accumulators.empty();
}

/// Whether the loop can run twice, once for the maximum and once in its frame:
/// it has no effects but stores, which only the second run keeps.
static bool canRunTwice(scf::ForOp loop) {
  WalkResult walk = loop.getBody()->walk([](Operation *op) {
    bool repeatable = op->getNumRegions() != 0 || isMemoryEffectFree(op) ||
                      isa<triton::LoadOp, triton::StoreOp>(op);
    return repeatable ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walk.wasInterrupted();
}

/// The first running maximum, from this carried value on, that something is
/// kept relative to.
static std::optional<RescaledLoop> match(scf::ForOp loop, unsigned from = 0) {
  if (!canRunTwice(loop))
    return std::nullopt;
  for (unsigned index = from; index < loop.getNumResults(); ++index) {
    Value next = matchRunningMaximum(loop, index);
    if (!next)
      continue;
    RescaledLoop candidate;
    candidate.loop = loop;
    candidate.maximum = index;
    candidate.next = next;
    for (double delta : findExponents(candidate))
      if (proveFrame(candidate, delta))
        return candidate;
  }
  return std::nullopt;
}

/// A_0·e^(δ(m_0−M)): the initial value seen from M. Since m_0 ≤ M, taking the
/// minimum with zero changes nothing but −∞ − (−∞), which has to be zero, too.
static Value changeFrame(OpBuilder &b, Location loc, Value init, Value from,
                         Value to, double delta, ArrayRef<unsigned> axes) {
  if (matchPattern(init, m_AnyZeroFloat()))
    return init;
  Tile m0(b, loc, from), m = m0.like(to);
  Tile difference = m0 - m;
  Tile distance = m0.make<arith::MinNumFOp>(difference, m0.constant(0.0));
  Value(distance).getDefiningOp()->setAttr(kNotPositiveAttr, b.getUnitAttr());
  Tile factor =
      std::abs(delta - M_LN2) < 1e-9
          ? distance.make<math::Exp2Op>(distance)
          : exp(std::abs(delta - 1) < 1e-9 ? distance : delta * distance);
  Value scale = castFloat(b, loc, factor, getElementTypeOrSelf(init.getType()));
  if (auto tile = dyn_cast<RankedTensorType>(init.getType()))
    scale = repeatOver(b, loc, scale, axes, tile.getShape());
  return arith::MulFOp::create(b, loc, init, scale);
}

/// The maximum after the loop as a residual of its own, right after the loop.
static ResidualOp finalMaximum(const RescaledLoop &found, unsigned &nextId) {
  scf::ForOp loop = found.loop;
  Value result = loop.getResult(found.maximum);
  for (Operation *user : result.getUsers())
    if (auto residual = dyn_cast<ResidualOp>(user)) {
      residual->moveAfter(loop);
      return residual;
    }
  OpBuilder b(loop->getContext());
  b.setInsertionPointAfter(loop);
  auto residual = ResidualOp::create(b, loop.getLoc(), result, nextId++);
  result.replaceAllUsesExcept(residual.getResult(), residual);
  return residual;
}

/// The result of a loop that a value is.
static OpResult getLoopResult(Value value) {
  if (auto residual = value.getDefiningOp<ResidualOp>())
    value = residual.getValue();
  return isa_and_nonnull<scf::ForOp>(value.getDefiningOp())
             ? cast<OpResult>(value)
             : OpResult();
}

namespace {
/// A loop in the frame of its final maximum.
struct FramedLoop {
  RescaledLoop original;
  Value maximum;
};

/// Rewrites the loops of a kernel, in order.
class Reframing {
public:
  /// Adds the loop in M's frame after the original, whose maximum M it uses,
  /// and returns it.
  scf::ForOp rewrite(const RescaledLoop &found, ResidualOp maximum);

private:
  scf::ForOp createFramed(OpBuilder &b, const RescaledLoop &found, Value m);
  Value createInit(OpBuilder &b, const RescaledLoop &found, unsigned index,
                   ArrayRef<unsigned> axes, Value m);
  FramedLoop *findChained(const RescaledLoop &next, unsigned index);

  llvm::MapVector<Operation *, FramedLoop> framedLoops;
  /// The loops before the current one, in its frame.
  llvm::DenseMap<Operation *, scf::ForOp> chained;
};
} // namespace

/// Whether `loop` may as well run after `last`: nothing on the way writes.
static bool canRunAfter(scf::ForOp loop, Operation *last) {
  if (loop->getBlock() != last->getBlock())
    return false;
  for (Operation *op = loop; op != last->getNextNode(); op = op->getNextNode())
    if (!op || mayWrite(op))
      return false;
  return true;
}

/// The loop whose sum, in the frame of the maximum that `next` starts from, is
/// the initial value of this accumulator, and goes nowhere else; else null.
FramedLoop *Reframing::findChained(const RescaledLoop &next, unsigned index) {
  scf::ForOp loop = next.loop;
  OpResult result = getLoopResult(loop.getInitArgs()[index]);
  auto it = result ? framedLoops.find(result.getOwner()) : framedLoops.end();
  if (it == framedLoops.end())
    return nullptr;
  FramedLoop &before = it->second;
  auto accumulator =
      before.original.accumulators.find(result.getResultNumber());
  bool fits = accumulator != before.original.accumulators.end() &&
              accumulator->second == next.accumulators.lookup(index) &&
              before.maximum == loop.getInitArgs()[next.maximum] &&
              before.original.delta == next.delta &&
              canRunAfter(before.original.loop, loop);
  auto isOnlyFor = [&](Value value) {
    return llvm::all_of(value.getUsers(), [&](Operation *user) {
      return user == loop || isa<ResidualOp>(user);
    });
  };
  fits = fits && isOnlyFor(result);
  for (Operation *user : result.getUsers())
    if (auto residual = dyn_cast<ResidualOp>(user))
      fits = fits && isOnlyFor(residual.getResult());
  return fits ? &before : nullptr;
}

/// The initial value of an accumulator, seen from `m`.
Value Reframing::createInit(OpBuilder &b, const RescaledLoop &found,
                            unsigned index, ArrayRef<unsigned> axes, Value m) {
  scf::ForOp loop = found.loop;
  Value init = loop.getInitArgs()[index];
  if (mutation::isMade("rescale:initial value in its own frame"))
    return init;
  FramedLoop *before = findChained(found, index);
  if (!before)
    return changeFrame(b, loop.getLoc(), init,
                       loop.getInitArgs()[found.maximum], m, found.delta, axes);
  OpResult result = getLoopResult(init);
  auto it = chained.find(result.getOwner());
  if (it == chained.end())
    it = chained
             .insert({result.getOwner(), createFramed(b, before->original, m)})
             .first;
  return it->second.getResult(result.getResultNumber());
}

scf::ForOp Reframing::createFramed(OpBuilder &b, const RescaledLoop &found,
                                   Value m) {
  scf::ForOp loop = found.loop;
  SmallVector<Value> inits(loop.getInitArgs());
  for (auto &[index, axes] : found.accumulators)
    inits[index] = createInit(b, found, index, axes, m);
  inits[found.maximum] = m;
  IRMapping map;
  auto framed = cast<scf::ForOp>(b.clone(*loop, map));
  framed.getInitArgsMutable().assign(inits);
  map.lookup(found.next).replaceAllUsesWith(m);
  framed.getRegionIterArg(found.maximum).replaceAllUsesWith(m);
  // The rescaling factors e^(δ(M−M)) are one.
  framed.getBody()->walk([&](arith::SubFOp op) {
    if (op.getLhs() != m || op.getRhs() != m)
      return;
    OpBuilder inside(op);
    op.replaceAllUsesWith(
        Tile(inside, op.getLoc(), m).constant(0.0).operator Value());
  });
  return framed;
}

scf::ForOp Reframing::rewrite(const RescaledLoop &found, ResidualOp maximum) {
  scf::ForOp loop = found.loop;
  OpBuilder b(maximum->getContext());
  b.setInsertionPointAfter(maximum);
  chained.clear();
  scf::ForOp framed = createFramed(b, found, maximum.getResult());
  loop.walk([](triton::StoreOp store) { store.erase(); });
  for (unsigned index = 0; index < loop.getNumResults(); ++index)
    if (index != found.maximum)
      loop.getResult(index).replaceAllUsesWith(framed.getResult(index));
  framedLoops[framed] = {found, maximum.getResult()};
  return framed;
}

static SmallVector<scf::ForOp> loopsOf(triton::FuncOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  return loops;
}

void RescaleAccumulators::runOnOperation() {
  triton::FuncOp primal = getPrimal(getOperation());
  if (!primal)
    return;
  unsigned nextId = 0;
  primal.walk(
      [&](ResidualOp op) { nextId = std::max(nextId, op.getId() + 1); });
  // The backward may use a maximum that nothing in the forward does.
  for (scf::ForOp loop : loopsOf(primal))
    for (auto found = match(loop); found;
         found = match(loop, found->maximum + 1))
      finalMaximum(*found, nextId).setPinned(true);
  OpBuilder builder(primal);
  builder.setInsertionPointAfter(primal);
  auto kernel = cast<triton::FuncOp>(builder.clone(*primal));
  kernel.setSymName((primal.getSymName() + "_framed").str());
  kernel->setAttr(kRoleAttr, builder.getStringAttr("differentiated"));

  Reframing reframing;
  for (scf::ForOp loop : loopsOf(kernel))
    // In the frame of one maximum, a loop is still to be put in that of others.
    while (std::optional<RescaledLoop> found = match(loop)) {
      ResidualOp maximum = finalMaximum(*found, nextId);
      maximum.setPinned(false);
      loop = reframing.rewrite(*found, maximum);
    }
}
