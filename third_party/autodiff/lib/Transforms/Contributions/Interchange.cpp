//===- Interchange.cpp - Make iterations programs -------------------------===//
#include "InterchangedKernel.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_INTERCHANGE
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("interchange"), kSkewed("skew-loops");

namespace {
struct Interchange : autodiff::impl::InterchangeBase<Interchange> {
  using InterchangeBase::InterchangeBase;

  void transform() override;
  void interchangeIn(triton::FuncOp kernel);
  ReasonOr<LoopAccumulate> locate(Contribution op) const;
  ReasonOr<Candidate> join(unsigned argument,
                           ArrayRef<Contribution> contributions) const;
  SmallVector<Candidate, 0> examine(unsigned argument,
                                    const GradientUse &use) const;
  SmallVector<Candidate, 0> examineMoved(unsigned argument,
                                         const GradientUse &use) const;
  SmallVector<LoopAccumulate, 0> locateFollowers(const GradientUse &use,
                                                 ArrayRef<Candidate> group);
  using Group = SmallVector<Candidate, 0>;
  SmallVector<LoopAccumulate, 0> findFollowers(ArrayRef<Candidate> group,
                                               ArrayRef<Group> later);
  ReasonOr<triton::FuncOp> build(ArrayRef<Candidate> group,
                                 ArrayRef<LoopAccumulate> followers,
                                 unsigned number, Handover &handover) const;

  triton::FuncOp backward;
  ArrayRef<ScalarExpr> digits;
};
} // namespace

/// The nest of loops that an addition is in.
ReasonOr<LoopAccumulate> Interchange::locate(Contribution op) const {
  if (op.isOuter())
    return because(op,
                   "no loop contributes, whose iterations could be programs");
  if (!op.getLoop())
    return because(op, "what is contributed is made in the branch at {0}",
                   op->getParentOp());
  if (Obstacle owned = op.findOwner())
    return *owned;
  ReasonOr<ParallelNest> nest = ParallelNest::of(op, digits);
  if (!nest)
    return nest.why();
  return LoopAccumulate{op, *nest};
}

/// Whether contributions go to the same addresses in iterations of the same
/// number; notes how many there are, and what must hold for that.
static Obstacle agree(Candidate &candidate, ArrayRef<AccessSpace> spaces) {
  const LoopAccumulate &first = candidate.contributions.front();
  candidate.count = first.nest.count();
  for (auto [contribution, space] :
       llvm::drop_begin(llvm::zip_equal(candidate.contributions, spaces))) {
    AccumulateOp op = contribution.op, firstOp = first.op;
    if (!contribution.nest.agreesWith(first.nest))
      return because(op, "the loops at {0} and {1} start or step differently",
                     first.nest.getInnermost(),
                     contribution.nest.getInnermost());
    if (op.getValue().getType() != firstOp.getValue().getType())
      return because(op,
                     "it is loaded at {0} as well, in tiles of another shape",
                     firstOp);
    if (!space.touchesSameAs(spaces.front()) &&
        !mutation::isMade("interchange:other addresses")) {
      ReasonOr<SmallVector<LimitAttr>> limits =
          spaces.front().findLimits(space);
      if (!limits)
        return because(op,
                       "it is loaded at {0} as well, where iterations of the "
                       "same number do not go to the same elements: {1}",
                       firstOp, limits.why());
      llvm::append_range(candidate.limits, *limits);
    }
    ExprAttr count = contribution.nest.count();
    if (count != candidate.count)
      candidate.count = maxOf(candidate.count, count);
  }
  return std::nullopt;
}

/// Whether an interchanged kernel can store the sum of contributions to an
/// argument, as far as addresses and loops tell.
ReasonOr<Candidate>
Interchange::join(unsigned argument,
                  ArrayRef<Contribution> contributions) const {
  Candidate candidate{argument, {}, {}, {}, {}, {}};
  SmallVector<AccessSpace> spaces;
  for (Contribution op : contributions) {
    ReasonOr<LoopAccumulate> contribution = locate(op);
    if (!contribution)
      return contribution.why();
    const ParallelNest &nest = contribution->nest;
    ReasonOr<AccessSpace> space =
        nest.findSpace(contribution->op, nest.count());
    if (!space)
      return space.why();
    spaces.push_back(*space);
    if (ArrayAttr moved = AccumulateOp(op).getMovedAttr())
      llvm::append_range(candidate.limits, moved.getAsRange<LimitAttr>());
    candidate.contributions.push_back(*contribution);
  }
  auto bounded = llvm::find_if(spaces, [](const AccessSpace &space) {
    return space.boundsIterations();
  });
  if (bounded != spaces.end()) {
    size_t place = bounded - spaces.begin();
    std::swap(spaces.front(), *bounded);
    std::swap(candidate.contributions.front(), candidate.contributions[place]);
  }
  if (Obstacle differs = agree(candidate, spaces))
    return *differs;
  candidate.summed = spaces.front().findShared(digits);
  bool repeats = llvm::any_of(candidate.contributions, [](const auto &each) {
    return !each.nest.getSummed().empty();
  });
  if (candidate.summed.empty() && !repeats)
    return spaces.front().whyUnshared(digits);
  const ParallelNest &nest = candidate.contributions[0].nest;
  if (!nest.hasSameBase(candidate.summed))
    return because(backward,
                   "where the loop at {0} starts depends on {1}, and programs "
                   "that differ in it load the same elements",
                   nest.getInnermost(), candidate.summed);
  // The digit that bounds depend on runs fastest.
  llvm::stable_sort(candidate.summed, [&](const auto &x, const auto &y) {
    auto decides = [&](const ScalarExpr &digit) {
      return llvm::any_of(candidate.contributions, [&](const auto &c) {
        return c.nest.dependsOn(digit);
      });
    };
    return decides(x) < decides(y);
  });
  return candidate;
}

/// What interchanged kernels can store, or add where contributions to an
/// argument take turns (those with rows in common, and those with columns).
/// Then there is one sum for each of its elements, as products have it.
SmallVector<Candidate, 0> Interchange::examine(unsigned argument,
                                               const GradientUse &use) const {
  if (use.contributions.empty())
    return {};
  Contribution subject = use.contributions.front();
  if (llvm::is_contained(atomic, argument)) {
    kRemarks.missed(subject, "a check of the addresses failed at a launch");
    return {};
  }
  if (!use.upstreams.empty()) {
    kRemarks.missed(subject, "the kernel stores to the argument, too, at {0}",
                    use.upstreams.front());
    return {};
  }
  ReasonOr<Candidate> all = join(argument, use.contributions);
  if (all)
    return {std::move(*all)};
  if (use.contributions.size() == 1)
    kRemarks.missed(subject, all.why());
  SmallVector<SmallVector<Contribution>> alike;
  for (Contribution op : use.contributions) {
    if (op.getRemainder() || op.getWhole())
      return {};
    Reason alone;
    auto joins = [&](ArrayRef<Contribution> others) {
      SmallVector<Contribution> more = llvm::to_vector(others);
      more.push_back(op);
      ReasonOr<Candidate> candidate = join(argument, more);
      alone = candidate.why();
      return candidate.has_value();
    };
    auto place = llvm::find_if(alike, joins);
    if (place != alike.end())
      place->push_back(op);
    else if (joins({}))
      alike.push_back({op});
    else if (use.contributions.size() > 1)
      kRemarks.missed(op, alone);
  }
  SmallVector<Candidate, 0> candidates;
  for (ArrayRef<Contribution> contributions : alike) {
    ReasonOr<Candidate> candidate = join(argument, contributions);
    if (addsProducts(*candidate))
      candidates.push_back(std::move(*candidate));
    else
      kRemarks.missed(contributions.front(),
                      "it is loaded in {0} places, of which not all go "
                      "together, and what is contributed here is no product, "
                      "which would be worth a kernel of its own: {1}",
                      use.contributions.size(), all.why());
  }
  return candidates;
}

/// The same of the alternatives, if there are any.
SmallVector<Candidate, 0>
Interchange::examineMoved(unsigned argument, const GradientUse &use) const {
  if (use.alternatives.empty())
    return {};
  Contribution subject = use.contributions.front();
  ReasonOr<Candidate> moved = join(argument, use.alternatives);
  if (!moved) {
    kSkewed.missed(subject, moved.why());
    return {};
  }
  kSkewed.passed(subject,
                 "lanes and iterations are counted by the element that "
                 "they contribute to");
  moved->replaced = use.contributions;
  return {std::move(*moved)};
}

/// The uses, if each of their addresses is stored to by one program in one
/// iteration of a loop that the group runs, too; else nothing.
SmallVector<LoopAccumulate, 0>
Interchange::locateFollowers(const GradientUse &use,
                             ArrayRef<Candidate> group) {
  auto isRun = [&](const LoopAccumulate &follower) {
    return llvm::any_of(group, [&](const Candidate &candidate) {
      return llvm::any_of(candidate.contributions, [&](const auto &c) {
        return follower.nest.runsLike(c.nest);
      });
    });
  };
  SmallVector<LoopAccumulate, 0> followers;
  for (Contribution op : use.contributions) {
    ReasonOr<LoopAccumulate> follower = locate(op);
    if (!follower || op.getWhole() || !isRun(*follower))
      return {};
    followers.push_back(*follower);
  }
  auto &all = getAnalysis<Contributions>();
  std::optional<AccessSpace> space = all.ofAll(use.contributions);
  bool isOwned = use.upstreams.empty() && space &&
                 !all.findSharing(*space, followers.front().op);
  return isOwned ? followers : SmallVector<LoopAccumulate, 0>();
}

/// Whether a loop does nothing but what `done` holds.
static bool doesOnly(scf::ForOp loop, const llvm::DenseSet<Operation *> &done) {
  bool others =
      loop.walk([&](Operation *op) {
            auto sum = dyn_cast<AccumulateOp>(op);
            bool isOther = op != loop && op->getNumRegions() == 0 &&
                           mayWrite(op) && !done.contains(op) &&
                           !(sum && sum.getMoved());
            return isOther ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  return !others && loop->use_empty();
}

/// Whether a group sums up what is contributed to an argument.
static bool contributesTo(ArrayRef<Candidate> group, unsigned argument) {
  return llvm::any_of(group, [&](const Candidate &candidate) {
    return candidate.argument == argument;
  });
}

/// What else the kernel of a group stores on its way: all that loops are left
/// for, which then need not read their tiles again. What `later` groups sum up
/// is theirs.
SmallVector<LoopAccumulate, 0>
Interchange::findFollowers(ArrayRef<Candidate> group, ArrayRef<Group> later) {
  llvm::DenseSet<Operation *> done;
  for (const Candidate &candidate : group)
    for (const LoopAccumulate &contribution : candidate.contributions)
      done.insert(contribution.op);
  SmallVector<LoopAccumulate, 0> followers;
  for (auto &[argument, use] : getAnalysis<Contributions>().ownedBy(backward)) {
    bool isSummed = contributesTo(group, argument) ||
                    llvm::any_of(later, [argument = argument](const Group &g) {
                      return contributesTo(g, argument);
                    });
    if (isSummed || llvm::is_contained(atomic, argument))
      continue;
    for (const LoopAccumulate &follower : locateFollowers(use, group)) {
      followers.push_back(follower);
      done.insert(follower.op);
    }
  }
  bool areAll = llvm::all_of(followers, [&](const LoopAccumulate &follower) {
    return doesOnly(follower.nest.getOutermost(), done);
  });
  return areAll ? followers : SmallVector<LoopAccumulate, 0>();
}

/// What an iteration of the loops that become superfluous reads.
static double bytesRead(ArrayRef<LoopAccumulate> followers) {
  llvm::SmallPtrSet<Operation *, 4> seen;
  double bytes = 0;
  for (const LoopAccumulate &follower : followers)
    if (scf::ForOp loop = follower.nest.getInnermost();
        seen.insert(loop).second)
      for (auto load : loop.getBody()->getOps<triton::LoadOp>())
        bytes += bytesOf(load.getType());
  return bytes;
}

/// The group's kernel, with what is handed over to it; none if there is none,
/// or if more would be handed over for the followers than they save.
ReasonOr<triton::FuncOp> Interchange::build(ArrayRef<Candidate> group,
                                            ArrayRef<LoopAccumulate> followers,
                                            unsigned number,
                                            Handover &handover) const {
  SmallVector<Value> results;
  for (const Candidate &candidate : group)
    for (const LoopAccumulate &contribution : candidate.contributions)
      results.push_back(AccumulateOp(contribution.op).getValue());
  for (const LoopAccumulate &follower : followers)
    results.push_back(AccumulateOp(follower.op).getValue());
  handover.leave(results);
  if (!followers.empty() && handover.getBytes() > bytesRead(followers)) {
    Reason why = because(backward,
                         "{0} bytes would be handed over for an iteration, and "
                         "{1} be read less",
                         handover.getBytes(), bytesRead(followers));
    handover.undo();
    return why;
  }
  InterchangedKernel interchanged(backward, digits, group, followers, number);
  if (triton::FuncOp kernel = interchanged.build(handover))
    return kernel;
  // Its place among the programs may have no number in the new kernel.
  handover.undo();
  if (!handover.isOptional())
    return interchanged.why();
  InterchangedKernel again(backward, digits, group, followers, number);
  if (triton::FuncOp kernel = again.build(handover))
    return kernel;
  return again.why();
}

/// Whatever takes the place of program ids can only do so at the outer level.
static void hoistProgramIds(triton::FuncOp kernel) {
  SmallVector<Operation *> ids;
  kernel.walk([&](Operation *op) {
    if (isa<triton::GetProgramIdOp, triton::GetNumProgramsOp>(op))
      ids.push_back(op);
  });
  Block &body = kernel.getBody().front();
  for (Operation *id : ids)
    id->moveBefore(&body, body.begin());
}

/// Whether iterations have the same order. Turns of one argument are kernels.
static bool canShareKernel(ArrayRef<Candidate> group,
                           const Candidate &candidate) {
  const Candidate &first = group.front();
  return first.summed == candidate.summed && first.count == candidate.count &&
         first.contributions[0].nest.agreesWith(
             candidate.contributions[0].nest) &&
         !contributesTo(group, candidate.argument);
}

/// Remarks which programs of a new kernel sum over what.
static void remarkSums(const LoopAccumulate &contribution, StringRef kernel,
                       ArrayRef<ScalarExpr> summed) {
  const ParallelNest &nest = contribution.nest;
  AccumulateOp op = contribution.op;
  if (nest.getOwned().empty())
    return kRemarks.passed(op, "a program of {0} sums over the loop at {1}",
                           kernel, nest.getInnermost());
  scf::ForOp owned = nest.getOwned().back().getLoop();
  if (summed.empty())
    return kRemarks.passed(op,
                           "each iteration of the loop at {0} is a program of "
                           "{1}, which sums over the loop at {2}",
                           owned, kernel, nest.getSummed().front().getLoop());
  kRemarks.passed(op,
                  "each iteration of the loop at {0} is a program of {1}, "
                  "which sums over {2}",
                  owned, kernel, summed);
}

void Interchange::transform() {
  digits = getAnalysis<Contributions>().getDigits();
  for (triton::FuncOp each : getUnscheduled(getOperation()))
    interchangeIn(each);
}

void Interchange::interchangeIn(triton::FuncOp kernel) {
  backward = kernel;
  hoistProgramIds(backward);

  // Arguments whose kernels have the same order of iterations share one.
  SmallVector<Group> groups;
  for (auto &[argument, use] : getAnalysis<Contributions>().ownedBy(backward)) {
    // As they were, iterations share elements with other lanes.
    SmallVector<Candidate, 0> candidates = examineMoved(argument, use);
    if (candidates.empty())
      candidates = examine(argument, use);
    for (Candidate &candidate : candidates) {
      auto same = llvm::find_if(groups, [&](ArrayRef<Candidate> group) {
        return canShareKernel(group, candidate);
      });
      if (same == groups.end())
        same = groups.insert(groups.end(), Group());
      same->push_back(std::move(candidate));
    }
  }
  Handover handover(backward, digits);
  for (auto [number, group] : llvm::enumerate(groups)) {
    SmallVector<LoopAccumulate, 0> followers =
        findFollowers(group, ArrayRef(groups).drop_front(number + 1));
    ReasonOr<triton::FuncOp> kernel = build(group, followers, number, handover);
    if (!kernel && !followers.empty()) {
      for (LoopAccumulate &follower : followers)
        kRemarks.missed(follower.op, kernel.why());
      followers.clear();
      kernel = build(group, followers, number, handover);
    }
    for (Candidate &candidate : group)
      for (LoopAccumulate &contribution : candidate.contributions)
        if (kernel)
          remarkSums(contribution, kernel->getSymName(), candidate.summed);
        else
          kRemarks.missed(contribution.op, kernel.why());
    if (!kernel)
      continue;
    for (Candidate &candidate : group) {
      for (LoopAccumulate &contribution : candidate.contributions)
        contribution.op.erase();
      for (Contribution &other : candidate.replaced)
        other.erase();
    }
    for (LoopAccumulate &follower : followers) {
      kRemarks.passed(follower.op,
                      "stored by {0} on its way through the loop at {1}",
                      kernel->getSymName(), follower.nest.getInnermost());
      follower.op.erase();
    }
  }
  for (auto &[argument, use] : getAnalysis<Contributions>().in(backward))
    for (Contribution &alternative : use.alternatives)
      alternative.erase();
  // Nothing may be left to do for the kernel that stayed.
  if (getBackwards(getOperation()).size() > 1 && !mayWrite(backward))
    eraseKernel(backward);
}
