//===- MergeNests.cpp - Add up what two ways through a row contribute -----===//
//
// A kernel may go along a row twice, in one loop and in a nest (statistics over
// all channels of a group, then channel by channel). Then two loop nests
// contribute to the same elements, in different orders. The contribution of the
// single loop to an element only depends on that element. So a third nest,
// behind both, can compute both contributions and add them up.
//
//===----------------------------------------------------------------------===//
#include "LoopNest.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MERGENESTS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("merge-nests");

namespace {
struct MergeNests : autodiff::impl::MergeNestsBase<MergeNests> {
  using MergeNestsBase::MergeNestsBase;

  void transform() override;
  Obstacle merge(Contribution byParts, Contribution along);
  ReasonOr<CheckAttr> findCheck(Contribution byParts, Contribution along);
};
} // namespace

/// Whether a value of a nest is computed lane by lane, from what comes from
/// outside and loads where `op` contributes.
static bool isPointwise(Value value, LoopNest &nest, AccumulateOp op) {
  if (nest.front().isDefinedOutsideOfLoop(value))
    return true;
  Operation *definition = value.getDefiningOp();
  if (auto load = dyn_cast_or_null<triton::LoadOp>(definition))
    return load.getPtr() == op.getPtr() && load.getMask() == op.getMask() &&
           (!load.getOther() ||
            nest.front().isDefinedOutsideOfLoop(load.getOther()));
  return definition &&
         (definition->hasTrait<OpTrait::Elementwise>() ||
          isa<triton::SplatOp>(definition)) &&
         definition->getNumRegions() == 0 && isPure(definition) &&
         llvm::all_of(definition->getOperands(), [&](Value operand) {
           return isPointwise(operand, nest, op);
         });
}

/// The check that both contribute to all elements of the tensor, each program
/// to the same ones; none if that is not so in any launch.
ReasonOr<CheckAttr> MergeNests::findCheck(Contribution byParts,
                                          Contribution along) {
  ReasonOr<AccessSpace> parts = byParts.getExactSpace();
  ReasonOr<AccessSpace> run = along.getExactSpace();
  if (!parts || !run)
    return parts ? run.why() : parts.why();
  if (Obstacle why = getAnalysis<Contributions>().findSharing(*parts, along))
    return *why;
  ReasonOr<SmallVector<LimitAttr>> limits = parts->findSameRun(*run);
  if (!limits)
    return limits.why();
  CheckAttr check = parts->toCheck(CheckKind::Bijective, along.getArgument());
  return mutation::isMade("merge-nests:other elements") ? check
                                                        : check.within(*limits);
}

/// Loops like those of a nest at `builder`, which then stands in the innermost
/// one; null if their bounds depend on what the nest carries.
static scf::ForOp copyLoops(LoopNest &nest, OpBuilder &builder,
                            IRMapping &map) {
  scf::ForOp outermost;
  for (scf::ForOp loop : nest) {
    SmallVector<Value> range;
    for (Value each :
         {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      range.push_back(recompute(each, nest, builder, map));
    if (llvm::is_contained(range, Value())) {
      if (outermost)
        outermost.erase();
      return {};
    }
    auto copy = scf::ForOp::create(builder, loop.getLoc(), range[0], range[1],
                                   range[2]);
    copy->setAttr(kParallelAttr, builder.getUnitAttr());
    map.map(loop.getInductionVar(), copy.getInductionVar());
    if (!outermost)
      outermost = copy;
    builder.setInsertionPointToStart(copy.getBody());
  }
  return outermost;
}

/// Computes both contributions, to the same elements by the check, in a nest
/// like that of the first one.
Obstacle MergeNests::merge(Contribution byParts, Contribution along) {
  std::optional<LoopNest> nest = byParts.getNest(), last = along.getNest();
  if (!nest || !last || nest->empty() || last->size() != 1)
    return because(along,
                   "the loads at {0} and {1} are not both in loops whose "
                   "iterations stand alone, the latter in one",
                   byParts, along);
  if (byParts.getPtr().getType() != along.getPtr().getType() ||
      byParts.getValue().getType() != along.getValue().getType())
    return because(along, "tiles at {0} and {1} have other shapes", byParts,
                   along);
  if (!byParts.getMask() || !along.getMask())
    return because(along, "one of the loads at {0} and {1} has no mask",
                   byParts, along);
  if (!isPointwise(along.getValue(), *last, along))
    return because(along,
                   "what is contributed at {0} to an element depends on "
                   "others, too",
                   along);
  ReasonOr<CheckAttr> check = findCheck(byParts, along);
  if (!check)
    return check.why();
  OpBuilder b(last->front()->getBlock(), ++Block::iterator(last->front()));
  IRMapping map;
  scf::ForOp copy = copyLoops(*nest, b, map);
  Reason carries = because(along,
                           "what is contributed depends on what a loop at "
                           "{0} carries",
                           nest->front());
  if (!copy)
    return carries;
  Value pointer = recompute(byParts.getPtr(), *nest, b, map);
  Value mask = recompute(byParts.getMask(), *nest, b, map);
  Value value = recompute(byParts.getValue(), *nest, b, map);
  // What is loaded along the row is loaded here instead.
  IRMapping here;
  here.map(along.getPtr(), pointer);
  here.map(along.getMask(), mask);
  Value other = pointer && mask && value
                    ? recompute(along.getValue(), *last, b, here)
                    : Value();
  if (!other) {
    copy.erase();
    return carries;
  }
  Value sum = arith::AddFOp::create(b, along.getLoc(), value, other);
  map.map(byParts.getValue(), sum);
  cast<AccumulateOp>(b.clone(*byParts, map)).setWholeAttr(*check);
  kRemarks.passed(along,
                  "computed in a nest of loops like that at {0}, and added "
                  "to what is contributed there",
                  nest->front());
  byParts.erase();
  along.erase();
  return std::nullopt;
}

void MergeNests::transform() {
  auto &all = getAnalysis<Contributions>();
  for (triton::FuncOp backward : getUnscheduled(getOperation()))
    for (auto &[argument, use] : all.ownedBy(backward))
      if (use.upstreams.empty() && use.contributions.size() == 2 &&
          !llvm::is_contained(atomic, argument))
        if (Obstacle why = merge(use.contributions[0], use.contributions[1]))
          kRemarks.missed(use.contributions[1], *why);
}
