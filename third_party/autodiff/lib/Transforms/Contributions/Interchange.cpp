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

static constexpr Remarks kRemarks("interchange");

namespace {
struct Interchange : autodiff::impl::InterchangeBase<Interchange> {
  using InterchangeBase::InterchangeBase;

  void transform() override;
  void interchangeIn(triton::FuncOp kernel);
  ReasonOr<LoopAccumulate> locate(Contribution op) const;
  ReasonOr<Candidate> join(unsigned argument,
                           ArrayRef<Contribution> contributions) const;
  SmallVector<Candidate> examine(unsigned argument,
                                 const GradientUse &use) const;
  SmallVector<LoopAccumulate> locateFollowers(const GradientUse &use,
                                              ArrayRef<Candidate> group);
  using Group = SmallVector<Candidate>;
  SmallVector<LoopAccumulate> findFollowers(ArrayRef<Candidate> group,
                                            ArrayRef<Group> later);
  ReasonOr<triton::FuncOp> build(ArrayRef<Candidate> group,
                                 ArrayRef<LoopAccumulate> followers,
                                 unsigned number, Handover &handover) const;

  triton::FuncOp backward;
  ArrayRef<ScalarExpr> digits;
};
} // namespace

/// The loops that an addition is in, which has to be at their outer level.
ReasonOr<LoopAccumulate> Interchange::locate(Contribution op) const {
  scf::ForOp loop = op.getLoop(), primal = op.getPrimalLoop();
  if (op.isOuter())
    return because(op,
                   "no loop contributes, whose iterations could be programs");
  if (!loop)
    return because(op, "what is contributed is made in the branch at {0}",
                   op->getParentOp());
  if (Obstacle owned = op.findOwner())
    return *owned;
  if (!primal || loop->getParentOp() != backward ||
      !isa<triton::FuncOp>(primal->getParentOp()))
    return because(
        op, "the loop at {0} is inside of another loop or of a branch", loop);
  ReasonOr<ParallelLoop> parallel = ParallelLoop::of(loop, primal, digits);
  if (!parallel)
    return parallel.why();
  return LoopAccumulate{op, *parallel};
}

/// Whether contributions go to the same addresses in iterations of the same
/// number; notes how many there are, and what must hold for that.
static Obstacle agree(Candidate &candidate, ArrayRef<AccessSpace> spaces) {
  const LoopAccumulate &first = candidate.contributions.front();
  candidate.count = first.loop.count();
  for (auto [contribution, space] :
       llvm::drop_begin(llvm::zip_equal(candidate.contributions, spaces))) {
    AccumulateOp op = contribution.op, firstOp = first.op;
    if (!contribution.loop.agreesWith(first.loop))
      return because(op, "the loops at {0} and {1} start or step differently",
                     first.loop.getLoop(), contribution.loop.getLoop());
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
    ExprAttr count = contribution.loop.count();
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
  Candidate candidate{argument, {}, {}, {}, {}};
  SmallVector<AccessSpace> spaces;
  for (Contribution op : contributions) {
    ReasonOr<LoopAccumulate> contribution = locate(op);
    if (!contribution)
      return contribution.why();
    const ParallelLoop &parallel = contribution->loop;
    ReasonOr<AccessSpace> space =
        parallel.findSpace(contribution->op.getLoad(), parallel.count());
    if (!space)
      return space.why();
    spaces.push_back(*space);
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
  if (candidate.summed.empty())
    return spaces.front().whyUnshared(digits);
  if (!candidate.contributions[0].loop.hasSameBase(candidate.summed))
    return because(backward,
                   "where the loop at {0} starts depends on {1}, and programs "
                   "that differ in it load the same elements",
                   candidate.contributions[0].loop.getLoop(), candidate.summed);
  // The digit that bounds depend on runs fastest.
  llvm::stable_sort(candidate.summed, [&](const auto &x, const auto &y) {
    auto decides = [&](const ScalarExpr &digit) {
      return llvm::any_of(candidate.contributions, [&](const auto &c) {
        return c.loop.dependsOn(digit);
      });
    };
    return decides(x) < decides(y);
  });
  return candidate;
}

/// What interchanged kernels can store, or add where contributions to an
/// argument take turns (those with rows in common, and those with columns).
/// Then there is one sum for each of its elements, as products have it.
SmallVector<Candidate> Interchange::examine(unsigned argument,
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
  SmallVector<Candidate> candidates;
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

/// The uses, if each of their addresses is stored to by one program in one
/// iteration of a loop that the group runs, too; else nothing.
SmallVector<LoopAccumulate>
Interchange::locateFollowers(const GradientUse &use,
                             ArrayRef<Candidate> group) {
  auto isRun = [&](const LoopAccumulate &follower) {
    return llvm::any_of(group, [&](const Candidate &candidate) {
      return llvm::any_of(candidate.contributions, [&](const auto &c) {
        return follower.loop.runsLike(c.loop);
      });
    });
  };
  SmallVector<LoopAccumulate> followers;
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
  return isOwned ? followers : SmallVector<LoopAccumulate>();
}

/// Whether a loop does nothing but what `done` holds.
static bool doesOnly(scf::ForOp loop, const llvm::DenseSet<Operation *> &done) {
  bool others =
      loop.walk([&](Operation *op) {
            bool isOther = op != loop && op->getNumRegions() == 0 &&
                           mayWrite(op) && !done.contains(op);
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
SmallVector<LoopAccumulate>
Interchange::findFollowers(ArrayRef<Candidate> group, ArrayRef<Group> later) {
  llvm::DenseSet<Operation *> done;
  for (const Candidate &candidate : group)
    for (const LoopAccumulate &contribution : candidate.contributions)
      done.insert(contribution.op);
  SmallVector<LoopAccumulate> followers;
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
    return doesOnly(follower.loop.getLoop(), done);
  });
  return areAll ? followers : SmallVector<LoopAccumulate>();
}

/// What an iteration of the loops that become superfluous reads.
static double bytesRead(ArrayRef<LoopAccumulate> followers) {
  llvm::SmallPtrSet<Operation *, 4> seen;
  double bytes = 0;
  for (const LoopAccumulate &follower : followers)
    if (scf::ForOp loop = follower.loop.getLoop(); seen.insert(loop).second)
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
         first.contributions[0].loop.agreesWith(
             candidate.contributions[0].loop) &&
         !contributesTo(group, candidate.argument);
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
  for (auto &[argument, use] : getAnalysis<Contributions>().ownedBy(backward))
    for (Candidate &candidate : examine(argument, use)) {
      auto same = llvm::find_if(groups, [&](ArrayRef<Candidate> group) {
        return canShareKernel(group, candidate);
      });
      if (same == groups.end())
        same = groups.insert(groups.end(), Group());
      same->push_back(std::move(candidate));
    }
  Handover handover(backward, digits);
  for (auto [number, group] : llvm::enumerate(groups)) {
    SmallVector<LoopAccumulate> followers =
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
          kRemarks.passed(contribution.op,
                          "each iteration of the loop at {0} is a program of "
                          "{1}, which sums over {2}",
                          contribution.loop.getLoop(), kernel->getSymName(),
                          candidate.summed);
        else
          kRemarks.missed(contribution.op, kernel.why());
    if (!kernel)
      continue;
    for (Candidate &candidate : group)
      for (LoopAccumulate &contribution : candidate.contributions)
        contribution.op.erase();
    for (LoopAccumulate &follower : followers) {
      kRemarks.passed(follower.op,
                      "stored by {0} on its way through the loop at {1}",
                      kernel->getSymName(), follower.loop.getLoop());
      follower.op.erase();
    }
  }
  // Nothing may be left to do for the kernel that stayed.
  if (getBackwards(getOperation()).size() > 1 && !mayWrite(backward))
    eraseKernel(backward);
}
