//===- CountTrips.cpp - A kernel that counts iterations -------------------===//
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_COUNTTRIPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct CountTrips : autodiff::impl::CountTripsBase<CountTrips> {
  void runOnOperation() override;
};
} // namespace

/// The iterations of one run of `loop`, computed after it.
static Value countOnce(OpBuilder &b, Operation *op) {
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return loop.getResult(*findCounter(loop));
  auto loop = cast<scf::ForOp>(op);
  return countIterations(b, op->getLoc(), loop.getLowerBound(),
                         loop.getUpperBound(), loop.getStep(),
                         loop.getUnsignedCmp());
}

/// counters[n] = max(counters[n], iterations). More than an i32 holds would be
/// more than memory holds, too.
static void recordMost(Operation *loop, Value counters) {
  OpBuilder b(loop->getContext());
  b.setInsertionPointAfter(loop);
  Location loc = loop->getLoc();
  Value count = countOnce(b, loop);
  if (!count.getType().isInteger(32)) {
    Value most = arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(count.getType(), INT32_MAX));
    count = arith::TruncIOp::create(
        b, loc, b.getI32Type(), arith::MinUIOp::create(b, loc, count, most));
  }
  Value index = arith::ConstantOp::create(
      b, loc, loop->getAttrOfType<IntegerAttr>(kCounterAttr));
  Value pointer =
      triton::AddPtrOp::create(b, loc, counters.getType(), counters, index);
  Value always = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  auto atomic = triton::AtomicRMWOp::create(
      b, loc, b.getI32Type(), triton::RMWOp::MAX, pointer, count, always,
      triton::MemSemantic::RELAXED, triton::MemSyncScope::GPU);
  atomic->setAttr(kCounterAttr, loop->getAttr(kCounterAttr));
  loop->removeAttr(kCounterAttr);
}

void CountTrips::runOnOperation() {
  triton::FuncOp primal = getPrimal(getOperation());
  if (!primal)
    return;
  OpBuilder builder(primal);
  int counters = 0;
  primal.walk([&](LoopLikeOpInterface loop) {
    if (!mostIterations(loop))
      loop->setAttr(kCounterAttr, builder.getI32IntegerAttr(counters++));
  });
  if (counters == 0)
    return;

  triton::FuncOp kernel = derive(primal, "count");
  BlockArgument memory =
      appendOperand(kernel, triton::PointerType::get(builder.getI32Type(), 1),
                    OperandAttr::get(&getContext(), OperandKind::Counters, 0));
  // Loads stay as long as a bound depends on them; other effects do not happen.
  SmallVector<Operation *> effects, loops;
  kernel.walk([&](Operation *op) {
    if (op->hasAttr(kCounterAttr))
      loops.push_back(op);
    else if (!op->getNumRegions() && !op->hasTrait<OpTrait::IsTerminator>() &&
             !isMemoryEffectFree(op) && !isa<triton::LoadOp>(op))
      effects.push_back(op);
  });
  for (Operation *effect : effects) {
    builder.setInsertionPoint(effect);
    for (Value result : effect->getResults())
      result.replaceAllUsesWith(UnavailableOp::create(
          builder, effect->getLoc(), result.getType(),
          builder.getStringAttr(
              ("the result of '" + effect->getName().getStringRef() + "'")
                  .str())));
    effect->erase();
  }
  for (Operation *loop : loops)
    recordMost(loop, memory);
}
