//===- Reframing.cpp - Loops in the frame of a final maximum --------------===//
#include "Reframing.h"

#include "AttainedSums.h"
#include "UnseenRows.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;

/// m_0 − M. If both are −∞, it has to be zero; also if M is replaced by zero
/// because no loop has run. (A minimum of the difference and zero would be
/// right, but halve the derivative where m_0 is the maximum.)
Tile Reframing::Frame::getDistance(Tile start) const {
  Tile difference = start - start.like(maximum);
  Value holds =
      hasRun ? splatTo(start.b(), start.loc(), hasRun, start.type())
             : compare(arith::CmpFPredicate::ORD, difference, difference);
  Tile distance = where(holds, difference, start.constant(0.0));
  Value(distance).getDefiningOp()->setAttr(kChangesFrameAttr,
                                           start.b().getUnitAttr());
  return distance;
}

/// e^(δ(m_0−M)) for an initial value of this type.
static Value getFactor(Tile distance, double delta, Type type,
                       ArrayRef<unsigned> axes) {
  OpBuilder &b = distance.b();
  Tile scale =
      std::abs(delta - M_LN2) < 1e-9
          ? distance.make<math::Exp2Op>(distance)
          : exp(std::abs(delta - 1) < 1e-9 ? distance : delta * distance);
  Value factor =
      castFloat(b, distance.loc(), scale, getElementTypeOrSelf(type));
  if (auto tile = dyn_cast<RankedTensorType>(type))
    factor = repeatOver(b, distance.loc(), factor, axes, tile.getShape());
  return factor;
}

/// The result of a loop that a value is, maybe as a residual.
static OpResult getLoopResult(Value value) {
  if (auto residual = value.getDefiningOp<ResidualOp>())
    value = residual.getValue();
  return isa_and_nonnull<scf::ForOp>(value.getDefiningOp())
             ? cast<OpResult>(value)
             : OpResult();
}

static Value runs(OpBuilder &b, scf::ForOp loop) {
  return arith::CmpIOp::create(b, loop.getLoc(), arith::CmpIPredicate::slt,
                               loop.getLowerBound(), loop.getUpperBound());
}

/// The loop whose sum is the initial value of this accumulator, relative to the
/// maximum that `next` starts from, and has no other use; else null.
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
              before.original.isGuarded == next.isGuarded &&
              mayStayUnseen(before.original) == mayStayUnseen(next) &&
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

/// The initial value of an accumulator relative to M: A_0·e^(δ(m_0−M)).
Value Reframing::createInit(OpBuilder &b, const RescaledLoop &found,
                            unsigned index, ArrayRef<unsigned> axes,
                            const Frame &frame) {
  scf::ForOp loop = found.loop;
  Value init = loop.getInitArgs()[index];
  if (matchPattern(init, m_AnyZeroFloat()) ||
      mutation::isMade("rescale:initial value in its own frame"))
    return init;
  if (FramedLoop *before = findChained(found, index)) {
    OpResult result = getLoopResult(init);
    if (!chained.contains(result.getOwner()))
      chained.insert(
          {result.getOwner(), createFramed(b, before->original, frame)});
    return chained.lookup(result.getOwner())
        .getResult(result.getResultNumber());
  }
  Tile distance = frame.getDistance(Tile(b, loop.getLoc(), found.getStart()));
  return arith::MulFOp::create(
      b, loop.getLoc(), init,
      getFactor(distance, found.delta, init.getType(), axes));
}

scf::ForOp Reframing::createFramed(OpBuilder &b, const RescaledLoop &found,
                                   Frame frame) {
  scf::ForOp loop = found.loop;
  Value m = frame.maximum;
  if (frame.hasRun)
    frame.hasRun =
        arith::OrIOp::create(b, loop.getLoc(), frame.hasRun, runs(b, loop));
  SmallVector<Value> inits(loop.getInitArgs());
  for (auto &[index, axes] : found.accumulators)
    inits[index] = createInit(b, found, index, axes, frame);
  inits[found.maximum] = m;
  // Values that do not depend on the maximum come from rewritten loops, too.
  for (Value &init : inits)
    if (OpResult result = getLoopResult(init))
      if (scf::ForOp before = chained.lookup(result.getOwner()))
        init = before.getResult(result.getResultNumber());
  IRMapping map;
  auto framed = cast<scf::ForOp>(b.clone(*loop, map));
  framed.getInitArgsMutable().assign(inits);
  for (auto [selection, chosen] : found.decided)
    map.lookup(selection).replaceAllUsesWith(map.lookupOrDefault(chosen));
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

/// The final maximum to be used; zero for −∞ if the loop treats that
/// separately.
Reframing::Frame Reframing::createFrame(OpBuilder &b, const RescaledLoop &found,
                                        Value maximum) {
  if (!found.isGuarded || !mayStayUnseen(found))
    return {maximum, Value()};
  Tile m(b, maximum.getLoc(), maximum);
  Tile unseen = m.constant(-std::numeric_limits<double>::infinity());
  Value isUnseen = compare(arith::CmpFPredicate::OEQ, m, unseen);
  Value never = arith::ConstantIntOp::create(b, m.loc(), 0, 1);
  return {where(isUnseen, m.constant(0.0), m), never};
}

/// Adds the loop that uses the final maximum behind the original, of which only
/// that `maximum` is used from then on. Returns it.
scf::ForOp Reframing::addFramed(const RescaledLoop &found, Value maximum) {
  scf::ForOp loop = found.loop;
  OpBuilder b(loop->getContext());
  b.setInsertionPointAfterValue(maximum);
  chained.clear();
  scf::ForOp framed = createFramed(b, found, createFrame(b, found, maximum));
  loop.walk([](triton::StoreOp store) { store.erase(); });
  for (unsigned index = 0; index < loop.getNumResults(); ++index)
    if (index != found.maximum)
      loop.getResult(index).replaceAllUsesWith(framed.getResult(index));
  FramedLoop added{found, maximum, {}};
  for (auto &[index, axes] : found.accumulators)
    if (isAttained(found, index))
      added.attained.push_back(index);
  framedLoops[framed] = std::move(added);
  return framed;
}

/// Whether a sum of the loop is at least one wherever the maximum depends on
/// summed values. Before the loop, that holds if the maximum is a constant.
bool Reframing::isAttained(const RescaledLoop &found, unsigned index) {
  scf::ForOp loop = found.loop;
  APFloat start(0.0);
  Value init = loop.getInitArgs()[index];
  bool holds = matchPattern(found.getStart(), m_Constant()) ||
               (matchPattern(init, m_ConstantFloat(&start)) &&
                start.convertToDouble() >= 1);
  if (FramedLoop *before = findChained(found, index))
    holds = llvm::is_contained(before->attained,
                               getLoopResult(init).getResultNumber());
  return holds && (staysAttained(found, index) ||
                   mutation::isMade("maxima:sums that may be zero"));
}

void Reframing::markAttained() {
  for (auto &[framed, loop] : framedLoops) {
    SmallVector<int32_t> pairs;
    for (unsigned index : loop.attained)
      pairs.append({static_cast<int32_t>(loop.original.maximum),
                    static_cast<int32_t>(index)});
    if (!pairs.empty())
      framed->setAttr(kAttainedAttr,
                      DenseI32ArrayAttr::get(framed->getContext(), pairs));
  }
}

bool Reframing::rewrite(
    scf::ForOp loop,
    llvm::function_ref<Value(const RescaledLoop &)> getMaximum) {
  bool isRewritten = false;
  // A loop may have several maxima, which are replaced one after the other.
  while (std::optional<RescaledLoop> found = RescaledLoop::match(loop)) {
    loop = addFramed(*found, getMaximum(*found));
    isRewritten = true;
  }
  return isRewritten;
}
