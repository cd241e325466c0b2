//===- Contributions.h - What kernels add to gradients ----------*- C++ -*-===//
//
// An `autodiff.accumulate` is the adjoint of a load, its *site*. What passes
// ask about it is of two kinds. What holds of the site holds in every backward
// kernel on the forward's grid: which elements it goes to, which programs share
// them. What holds of the contribution itself (its value, its mask, the loops
// around it) changes as passes rewrite it. See docs/decisions/planner.md.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_CONTRIBUTIONS_H
#define AUTODIFF_ANALYSIS_CONTRIBUTIONS_H

#include "autodiff/Analysis/AccessSpaces.h"
#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include <map>

namespace mlir::autodiff {

/// Parallel loops in one another, the outermost first.
using LoopNest = SmallVector<scf::ForOp, 2>;

/// What one place in a backward kernel adds to the gradient of an argument: the
/// operation, with its site.
class Contribution : public AccumulateOp {
public:
  Contribution(AccumulateOp op, triton::LoadOp load, AccessSpaces &spaces)
      : AccumulateOp(op), load(load), spaces(&spaces) {}

  /// The primal's load: what follows, up to getExactSpace, is about it.
  triton::LoadOp getLoad() const { return load; }
  /// Whether it is an alternative, whose lanes and iterations are not the
  /// load's.
  bool isMoved() const { return AccumulateOp(*this).getMoved().has_value(); }
  /// The loop that it stands in, with nothing in between; null if there is
  /// none.
  scf::ForOp getPrimalLoop() const;
  /// The elements that the contribution goes to, as long as no pass has given
  /// it others (`whole`).
  ReasonOr<AccessSpace> getSpace() const;
  /// The same if every program goes to all of them; else why not.
  ReasonOr<AccessSpace> getExactSpace() const;

  /// Whether it stands in no loop and no branch.
  bool isOuter() const;
  /// The loop that it stands in, with nothing in between; null if there is
  /// none.
  scf::ForOp getLoop() const;
  /// The loops around it, if all are parallel and nothing else is around it;
  /// empty if there are none.
  std::optional<LoopNest> getNest() const;
  /// The branches around it, the innermost first, which guard it as its mask
  /// does.
  SmallVector<scf::IfOp> getBranches() const;
  /// Its address in this kernel.
  ReasonOr<LinearForm> getForm() const;
  /// That a pass has found one place for all of it (`whole`). So no other pass
  /// has to, nor could it ask the site, whose elements may be others by now.
  Obstacle findOwner() const;

private:
  triton::LoadOp load;
  AccessSpaces *spaces;
};

/// The space, if it is exact; else why there is none that is.
ReasonOr<AccessSpace> exactly(ReasonOr<AccessSpace> space);

/// What a kernel does with the gradient of one argument.
struct GradientUse {
  SmallVector<UpstreamOp> upstreams;
  SmallVector<Contribution> contributions;
  /// The same contributions once more, from other lanes and iterations: whoever
  /// takes these erases the others.
  SmallVector<Contribution> alternatives;
};

/// By argument, in order.
using GradientUses = std::map<unsigned, GradientUse>;

/// The contributions of a module's backward kernels: an analysis that MLIR
/// keeps from pass to pass. What holds of sites is found once for each version
/// of the differentiated kernel, as AccessSpaces has it; a pass that asks does
/// not change that kernel before it has asked for all. Which contributions
/// there are is looked up when a pass asks, as it may have rewritten some.
class Contributions {
public:
  Contributions(Operation *module, AnalysisManager &manager);

  /// What a backward kernel does with gradients.
  GradientUses in(triton::FuncOp kernel);
  /// The same of the arguments whose gradient is this kernel's alone. What
  /// others add to it later (a remainder) changes nothing for this one.
  GradientUses ownedBy(triton::FuncOp kernel);

  /// The primal's stores whose cotangents are taken.
  SmallVector<Operation *> getStores(ArrayRef<UpstreamOp> upstreams);
  /// The numbers that program ids of the primal are made of.
  ArrayRef<ScalarExpr> getDigits();

  /// Why the elements of this space may belong to several programs, if so.
  /// (Those that add them up may differ in less: AccessSpace::findShared.)
  Obstacle findSharing(const AccessSpace &space, Operation *access);
  /// The space of all of these, see AccessSpace.
  ReasonOr<AccessSpace> ofAll(ArrayRef<Contribution> contributions);
  ReasonOr<AccessSpace> findFor(ArrayRef<Contribution> contributions);
  ReasonOr<AccessSpace> findFor(ArrayRef<UpstreamOp> upstreams);
  /// What the sites of these reach, each once; null where no launch knows.
  SmallVector<ReachAttr> findReaches(ArrayRef<Contribution> contributions);

  /// Keeps what there is until somebody asks for it.
  bool isInvalidated(const AnalysisManager::PreservedAnalyses &) {
    isCurrent = false;
    return false;
  }

private:
  /// Finds sites anew if the differentiated kernel is another one.
  void update();

  ModuleOp module;
  AccessSpaces &spaces;
  bool isCurrent = false; ///< nobody has changed the kernel since
  triton::FuncOp kernel;  ///< the differentiated one
  llvm::hash_code state = 0;
  llvm::DenseMap<unsigned, Operation *> sites;
  std::optional<SmallVector<ScalarExpr>> digits;
};

/// The backward kernels on the forward's grid: what the forward's addresses
/// say, they say about these.
SmallVector<triton::FuncOp> getUnscheduled(ModuleOp module);

/// The primal's loads, stores and atomics by site.
llvm::DenseMap<unsigned, Operation *> collectSites(triton::FuncOp primal);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_CONTRIBUTIONS_H
