//===- ParallelNest.cpp - Parallel loops in one another -------------------===//
#include "ParallelLoop.h"

#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Support/Mutation.h"

using namespace mlir;
using namespace mlir::autodiff;
using From = ScalarExpr::From;

/// The loops around an operation, the outermost first; none if it is in
/// something else, too.
static std::optional<SmallVector<scf::ForOp>> findLoops(Operation *op) {
  SmallVector<scf::ForOp> loops;
  for (Operation *parent = op->getParentOp(); !isa<triton::FuncOp>(parent);
       parent = parent->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop)
      return std::nullopt;
    loops.push_back(loop);
  }
  std::reverse(loops.begin(), loops.end());
  return loops;
}

ReasonOr<ParallelNest> ParallelNest::of(Contribution op,
                                        ArrayRef<ScalarExpr> digits) {
  auto loops = findLoops(op), primals = findLoops(op.getLoad());
  if (!loops || !primals || loops->size() != primals->size())
    return because(op, "the loop at {0} is inside of a branch", op.getLoop());
  ParallelNest nest;
  nest.outermost = loops->front();
  nest.innermost = loops->back();
  bool isMoved = op.isMoved();
  Value pointer = isMoved ? AccumulateOp(op).getPtr() : op.getLoad().getPtr();
  ReasonOr<LinearForm> address = LinearForm::of(pointer, {}, From::Memory);
  for (auto [loop, primal] : llvm::zip_equal(*loops, *primals)) {
    ReasonOr<ParallelLoop> parallel = ParallelLoop::of(loop, primal, digits);
    if (!parallel)
      return parallel.why();
    scf::ForOp around = isMoved ? loop : primal;
    bool isOwned = !address || address->getStep(around).getConstant() != 0;
    if (!parallel->isUniform()) {
      if (!isOwned || nest.varying || isMoved)
        return because(op,
                       "programs differ in which iterations of the loop at {0} "
                       "they run, and {1}",
                       loop,
                       isOwned ? "of a loop around it, too"
                               : "all of them go to the same elements");
      nest.varying = nest.owned.size();
    }
    (isOwned ? nest.owned : nest.summed).push_back(*parallel);
  }
  return nest;
}

ReasonOr<AccessSpace> ParallelNest::findSpace(const Contribution &op,
                                              ExprAttr count) const {
  bool isMoved = op.isMoved();
  Operation *access = op.getLoad();
  if (isMoved)
    access = AccumulateOp(op);
  SmallVector<scf::ForOp> repeated =
      llvm::map_to_vector(summed, [&](const ParallelLoop &loop) {
        return isMoved ? loop.getLoop() : loop.getPrimal();
      });
  AccessSpace::Renumbering numbers{nullptr, false, ScalarExpr::constant(1),
                                   count};
  if (isSingle() && !isMoved)
    numbers = owned.front().numberAlike(count);
  else if (varying)
    numbers = owned[*varying].numberAlike(owned[*varying].count());
  numbers.summed = repeated;
  ReasonOr<AccessSpace> space = AccessSpace::of(access, &numbers);
  if (space && space->isExact())
    return space;
  ReasonOr<AccessSpace> moving =
      AccessSpace::of(access, &numbers, From::Memory);
  if (moving && moving->isExact())
    return moving;
  return space ? space->whyInexact() : space.why();
}

ExprAttr ParallelNest::count() const {
  ExprAttr product;
  for (const ParallelLoop &loop : owned)
    product = product ? mulOf(product, loop.count()) : loop.count();
  return product ? product
                 : ExprAttr::get(scf::ForOp(outermost).getContext(), 1);
}

bool ParallelNest::hasSameBase(ArrayRef<ScalarExpr> digits) const {
  return llvm::all_of(
      owned, [&](const auto &each) { return each.hasSameBase(digits); });
}

bool ParallelNest::dependsOn(const ScalarExpr &digit) const {
  return llvm::any_of(owned,
                      [&](const auto &each) { return each.dependsOn(digit); });
}

bool ParallelNest::agreesWith(const ParallelNest &other) const {
  // The outermost number has no other one above it.
  auto agree = [&](const auto &pair) {
    const auto &[a, b] = pair;
    return a.agreesWith(b) && (&a == owned.begin() || a.count() == b.count());
  };
  return owned.size() == other.owned.size() &&
         llvm::all_of(llvm::zip(owned, other.owned), agree);
}

bool ParallelNest::runsLike(const ParallelNest &other) const {
  return innermost == other.innermost ||
         (isUniform() && other.isUniform() && agreesWith(other) &&
          count() == other.count() && summed.empty() && other.summed.empty());
}
