//===- MergeContributions.cpp - Add up what goes to the same addresses ----===//
#include "ArgumentUses.h"
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MERGECONTRIBUTIONS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct MergeContributions
    : autodiff::impl::MergeContributionsBase<MergeContributions> {
  void runOnOperation() override;
  void merge(ArrayRef<AccumulateOp> accumulates);

  llvm::DenseMap<unsigned, Operation *> sites;
};
} // namespace

/// The parallel loop at the outer level that a contribution stands in; null if
/// there is none.
static scf::ForOp getLoop(AccumulateOp op) {
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  return loop && loop->hasAttr(kParallelAttr) &&
                 isa<triton::FuncOp>(loop->getParentOp())
             ? loop
             : scf::ForOp();
}

static bool haveSameBounds(scf::ForOp a, scf::ForOp b) {
  if (!a || !b)
    return a == b;
  return a.getLowerBound() == b.getLowerBound() &&
         a.getUpperBound() == b.getUpperBound() && a.getStep() == b.getStep();
}

/// Computes a value of one loop's body in another's, at `builder`; null if it
/// depends on what the first one carries.
static Value recompute(Value value, scf::ForOp from, OpBuilder &builder,
                       IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  if (!from || from.isDefinedOutsideOfLoop(value))
    return value;
  Operation *op = value.getDefiningOp();
  if (!op || (op->getNumRegions() > 0 && !isa<triton::ReduceOp>(op)))
    return {};
  for (Value operand : op->getOperands())
    if (Value copy = recompute(operand, from, builder, map))
      map.map(operand, copy);
    else
      return {};
  builder.clone(*op, map);
  return map.lookup(value);
}

/// Moves contributions to the last one, if all are made in loops that run the
/// same iterations, or in none, and go to the same addresses in each.
void MergeContributions::merge(ArrayRef<AccumulateOp> accumulates) {
  AccumulateOp last = accumulates.back();
  scf::ForOp target = getLoop(last);
  std::optional<AccessSpace> space =
      AccessSpace::of(sites.lookup(last.getSite()));
  if (!space || !space->isExact())
    return;
  OpBuilder builder(last);
  Value sum = last.getValue();
  for (AccumulateOp op : accumulates.drop_back()) {
    scf::ForOp loop = getLoop(op);
    std::optional<AccessSpace> other =
        AccessSpace::of(sites.lookup(op.getSite()));
    bool alike = haveSameBounds(loop, target) ||
                 mutation::isMade("merge:other iterations");
    if (!alike || op.getValue().getType() != sum.getType() || !other ||
        !other->isExact() ||
        (!other->touchesSameAs(*space) &&
         !mutation::isMade("merge:other addresses")))
      return;
    IRMapping map;
    if (loop)
      map.map(loop.getInductionVar(), target.getInductionVar());
    Value value = recompute(op.getValue(), loop, builder, map);
    if (!value)
      return;
    sum = arith::AddFOp::create(builder, op.getLoc(), sum, value);
  }
  last.getValueMutable().assign(sum);
  for (AccumulateOp op : accumulates.drop_back())
    op.erase();
}

void MergeContributions::runOnOperation() {
  triton::FuncOp backward = getBackward(getOperation());
  sites = collectSites(getPrimal(getOperation()));
  for (auto &[argument, use] : collectUses(backward)) {
    if (!use.upstreams.empty())
      continue;
    SmallVector<AccumulateOp> inLoops, outside;
    for (AccumulateOp op : use.accumulates)
      if (getLoop(op))
        inLoops.push_back(op);
      else if (op->getParentOp() == backward)
        outside.push_back(op);
    for (ArrayRef<AccumulateOp> alike : {inLoops, outside})
      if (alike.size() > 1)
        merge(alike);
  }
}
