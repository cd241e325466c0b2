//===- MergeContributions.cpp - Add up what goes to the same addresses ----===//
#include "LoopNest.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MERGECONTRIBUTIONS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("merge-contributions");

namespace {
struct MergeContributions
    : autodiff::impl::MergeContributionsBase<MergeContributions> {
  void transform() override;
  Obstacle merge(ArrayRef<Contribution> contributions);
};
} // namespace

/// How often the primal runs each of the loops around an access, the innermost
/// first; none if that is not known.
static std::optional<SmallVector<ScalarExpr>> findTrips(Operation *access) {
  SmallVector<ScalarExpr> trips;
  for (auto loop = access->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>()) {
    std::optional<ScalarExpr> trip = findTripCount(loop);
    if (!trip)
      return std::nullopt;
    trips.push_back(*trip);
  }
  return trips;
}

/// Whether the loops around two contributions run the same iterations.
static bool runAlike(const Contribution &a, const Contribution &b) {
  LoopNest some = *a.getNest(), others = *b.getNest();
  bool areSame = llvm::equal(some, others, [](scf::ForOp x, scf::ForOp y) {
    return x.getLowerBound() == y.getLowerBound() &&
           x.getUpperBound() == y.getUpperBound() && x.getStep() == y.getStep();
  });
  auto trips = findTrips(a.getLoad());
  return areSame || (trips && trips->size() == some.size() &&
                     trips == findTrips(b.getLoad()));
}

/// How far an access is from that of the next iteration, for each of the loops
/// around it, the innermost first; none if that is not known.
static std::optional<SmallVector<ScalarExpr>> findSteps(Operation *access) {
  std::optional<LinearForm> form = LinearForm::of(getAccessedPointer(access));
  if (!form)
    return std::nullopt;
  SmallVector<ScalarExpr> steps;
  for (auto loop = access->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    steps.push_back(form->getStep(loop));
  return steps;
}

/// Moves contributions to the last one, if all are made in nests of loops that
/// run the same iterations, and go to the same addresses in each.
Obstacle MergeContributions::merge(ArrayRef<Contribution> contributions) {
  Contribution last = contributions.back();
  LoopNest target = *last.getNest();
  ReasonOr<AccessSpace> space = last.getExactSpace();
  if (!space)
    return space.why();
  OpBuilder builder(last);
  Value sum = last.getValue();
  for (Contribution op : contributions.drop_back()) {
    LoopNest nest = *op.getNest();
    ReasonOr<AccessSpace> otherSpace = op.getExactSpace();
    bool alike =
        runAlike(op, last) || mutation::isMade("merge:other iterations");
    if (!alike)
      return because(last,
                     "the loops around it at {0} and {1} do not have the "
                     "same bounds",
                     op, last);
    if (op.getValue().getType() != sum.getType())
      return because(last, "tiles at {0} and {1} have other shapes", op, last);
    if (!otherSpace)
      return otherSpace.why();
    bool meet = otherSpace->touchesSameAs(*space) &&
                (findSteps(op.getLoad()) == findSteps(last.getLoad()) ||
                 mutation::isMade("merge:other order of loops"));
    if (!meet && !mutation::isMade("merge:other addresses"))
      return because(last,
                     "lanes and iterations at {0} and {1} do not go to the "
                     "same elements in the same order",
                     op, last);
    IRMapping map;
    for (auto [from, to] : llvm::zip_equal(nest, target))
      map.map(from.getInductionVar(), to.getInductionVar());
    Value value = recompute(op.getValue(), nest, builder, map);
    if (!value)
      return because(last,
                     "what is contributed at {0} cannot be computed at "
                     "{1}: it depends on what a loop there carries",
                     op, last);
    sum = arith::AddFOp::create(builder, op.getLoc(), sum, value);
  }
  last.getValueMutable().assign(sum);
  kRemarks.passed(last, "what {0} loads of it get is added up first",
                  contributions.size());
  for (Contribution op : contributions.drop_back())
    op.erase();
  return std::nullopt;
}

void MergeContributions::transform() {
  auto &all = getAnalysis<Contributions>();
  for (triton::FuncOp backward : getUnscheduled(getOperation()))
    for (auto &[argument, use] : all.ownedBy(backward)) {
      if (!use.upstreams.empty())
        continue;
      llvm::MapVector<size_t, SmallVector<Contribution>> byDepth;
      for (Contribution op : use.contributions)
        if (std::optional<LoopNest> nest = op.getNest())
          byDepth[nest->size()].push_back(op);
      for (auto &[depth, alike] : byDepth)
        if (alike.size() > 1)
          if (Obstacle why = merge(alike))
            kRemarks.missed(alike.back(), *why);
    }
}
