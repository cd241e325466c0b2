//===- Reframing.cpp - Loops in the frame of a final maximum --------------===//
#include "Reframing.h"

#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;

/// A_0·e^(δ(m_0−M)): the initial value seen from M, where −∞ − (−∞) has to be
/// zero, too. (A minimum of the difference and zero would be that, but halve
/// the derivative where m_0 is the maximum.)
static Value changeFrame(OpBuilder &b, Location loc, Value init, Value from,
                         Value to, double delta, ArrayRef<unsigned> axes) {
  if (matchPattern(init, m_AnyZeroFloat()))
    return init;
  Tile m0(b, loc, from), m = m0.like(to);
  Tile difference = m0 - m;
  Tile distance =
      where(compare(arith::CmpFPredicate::ORD, difference, difference),
            difference, m0.constant(0.0));
  Value(distance).getDefiningOp()->setAttr(kChangesFrameAttr, b.getUnitAttr());
  Tile factor =
      std::abs(delta - M_LN2) < 1e-9
          ? distance.make<math::Exp2Op>(distance)
          : exp(std::abs(delta - 1) < 1e-9 ? distance : delta * distance);
  Value scale = castFloat(b, loc, factor, getElementTypeOrSelf(init.getType()));
  if (auto tile = dyn_cast<RankedTensorType>(init.getType()))
    scale = repeatOver(b, loc, scale, axes, tile.getShape());
  return arith::MulFOp::create(b, loc, init, scale);
}

/// The result of a loop that a value is.
static OpResult getLoopResult(Value value) {
  if (auto residual = value.getDefiningOp<ResidualOp>())
    value = residual.getValue();
  return isa_and_nonnull<scf::ForOp>(value.getDefiningOp())
             ? cast<OpResult>(value)
             : OpResult();
}

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
Reframing::FramedLoop *Reframing::findChained(const RescaledLoop &next,
                                              unsigned index) {
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

/// Adds the loop in the frame of its final maximum after the original, of which
/// only that `maximum` is still used, and returns it.
scf::ForOp Reframing::addFramed(const RescaledLoop &found, Value maximum) {
  scf::ForOp loop = found.loop;
  OpBuilder b(loop->getContext());
  b.setInsertionPointAfterValue(maximum);
  chained.clear();
  scf::ForOp framed = createFramed(b, found, maximum);
  loop.walk([](triton::StoreOp store) { store.erase(); });
  for (unsigned index = 0; index < loop.getNumResults(); ++index)
    if (index != found.maximum)
      loop.getResult(index).replaceAllUsesWith(framed.getResult(index));
  framedLoops[framed] = {found, maximum};
  return framed;
}

bool Reframing::rewrite(
    scf::ForOp loop,
    llvm::function_ref<Value(const RescaledLoop &)> getMaximum) {
  bool isRewritten = false;
  // In the frame of one maximum, a loop is still to be put in that of others.
  while (std::optional<RescaledLoop> found = RescaledLoop::match(loop)) {
    loop = addFramed(*found, getMaximum(*found));
    isRewritten = true;
  }
  return isRewritten;
}
