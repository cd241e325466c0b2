//===- SumLevels.cpp - Where programs sum what they share -----------------===//
#include "SumLevels.h"

#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Transforms/Remarks.h"

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("persist");

int64_t SharedSum::countAdded() const {
  int64_t added = 0;
  for (AccumulateOp op : ops)
    added += elementsOf(op.getValue().getType());
  return added;
}

SumLevels::SumLevels(triton::FuncOp kernel, Contributions &all,
                     ArrayRef<unsigned> atomic)
    : kernel(kernel), all(all), atomic(atomic), uses(all.in(kernel)) {
  for (auto &[argument, use] : uses) {
    ReasonOr<SharedSum> sum = examine(argument, use);
    if (sum)
      sums.push_back(std::move(*sum));
    else
      for (Contribution op : use.contributions)
        kRemarks.missed(op, sum.why());
  }
}

/// Another kernel that contributes to an argument, null if there is none: what
/// it does and what is summed here would have to meet once more.
triton::FuncOp SumLevels::findOther(unsigned argument) const {
  for (triton::FuncOp other :
       getBackwards(triton::FuncOp(kernel)->getParentOfType<ModuleOp>()))
    if (other != kernel && all.in(other).count(argument) &&
        !mutation::isMade("persist:what other kernels contribute"))
      return other;
  return {};
}

/// Why a program cannot do the work of others and keep what is contributed.
Obstacle SumLevels::findOrder(const GradientUse &use) const {
  for (auto &[other, otherUse] : uses)
    if (!otherUse.upstreams.empty())
      // Cotangents that are taken out of their buffers stay where they are.
      return because(kernel,
                     "upstream gradients are taken one by one, where the "
                     "kernel stores at {0}",
                     UpstreamOp(otherUse.upstreams.front()));
  for (Contribution op : use.contributions)
    if (!op.isOuter())
      return because(kernel, "what is contributed is made in the {0} at {1}",
                     isa<scf::IfOp>(op->getParentOp()) ? "branch" : "loop",
                     op->getParentOp());
  return std::nullopt;
}

ReasonOr<SharedSum> SumLevels::examine(unsigned argument,
                                       const GradientUse &use) const {
  if (llvm::is_contained(atomic, argument))
    return because(kernel, "a check of the addresses failed at a launch");
  if (!use.upstreams.empty())
    return because(kernel, "the kernel stores to the argument, too, at {0}",
                   UpstreamOp(use.upstreams.front()));
  if (triton::FuncOp other = findOther(argument))
    return because(kernel, "{0} contributes to it, too", other.getSymName());
  for (Contribution op : use.contributions)
    if (Obstacle owned = op.findOwner())
      return *owned;
  ReasonOr<AccessSpace> space = exactly(all.findFor(use.contributions));
  if (!space)
    return space.why();
  SmallVector<ScalarExpr> shared = space->findShared(all.getDigits());
  if (shared.empty())
    return space->whyUnshared(all.getDigits());
  return SharedSum{argument, use.contributions, *space, shared, findOrder(use)};
}

int64_t SumLevels::countInRegisters(ArrayRef<ScalarExpr> serial) const {
  int64_t added = 0;
  for (const SharedSum &sum : sums)
    if (sum.isInRegistersOf(serial))
      added += sum.countAdded();
  return added;
}

SmallVector<ScalarExpr> SumLevels::findShape() const {
  // The first digits win a tie: digits have an order, arguments have none.
  ArrayRef<ScalarExpr> digits = all.getDigits();
  auto placesOf = [&](ArrayRef<ScalarExpr> shape) {
    return llvm::map_to_vector(shape, [&](const ScalarExpr &digit) {
      return llvm::find(digits, digit) - digits.begin();
    });
  };
  SmallVector<ScalarExpr> best;
  for (const SharedSum &sum : sums) {
    if (sum.notInRegisters)
      continue;
    int64_t added = countInRegisters(sum.shared), most = countInRegisters(best);
    if (best.empty() || added > most ||
        (added == most && placesOf(sum.shared) < placesOf(best)))
      best = sum.shared;
  }
  return best;
}

SmallVector<SharedSum, 0>
SumLevels::getInRegisters(ArrayRef<ScalarExpr> serial) const {
  return llvm::filter_to_vector<0>(
      sums, [&](const SharedSum &sum) { return sum.isInRegistersOf(serial); });
}

/// What a loop without a known number of iterations counts for, at least.
static constexpr int64_t kIterations = 8;

/// How many elements the operations in a block and in blocks inside of it move.
static int64_t countMoved(Operation *scope) {
  int64_t moved = 0;
  scope->walk([&](Operation *op) {
    if (!isa<triton::LoadOp, triton::StoreOp>(op))
      return;
    int64_t elements = elementsOf(op->getOperand(0).getType());
    for (Operation *parent = op->getParentOp(); parent != scope;
         parent = parent->getParentOp())
      if (isa<LoopLikeOpInterface>(parent))
        elements *= kIterations;
    moved += elements;
  });
  return moved;
}

Obstacle SumLevels::findCost(ArrayRef<ScalarExpr> serial) const {
  int64_t added = countInRegisters(serial), moved = 0;
  Operation *loop = nullptr;
  triton::FuncOp(kernel).walk([&](Operation *op) {
    if (isa<LoopLikeOpInterface>(op))
      loop = op;
    if (isa<triton::LoadOp, triton::StoreOp>(op))
      moved = std::max(moved, elementsOf(op->getOperand(0).getType()));
  });
  if (loop)
    return because(kernel,
                   "the loop at {0} is long beside what is added once for a "
                   "program",
                   loop);
  if (added > Target::of(kernel).processor.registers)
    return because(kernel,
                   "the sums would take {0} registers, and a processor has {1}",
                   added, Target::of(kernel).processor.registers);
  if (Target::kMovedOfAtomic * added < moved)
    return because(kernel,
                   "{0} elements are added, and {1} moved at a time, more than "
                   "{2} times as many, which takes longer",
                   added, moved, Target::kMovedOfAtomic);
  return std::nullopt;
}

Obstacle SumLevels::findCostOfParts(const SharedSum &sum) const {
  Operation *scope = sum.ops.front()->getParentOp();
  int64_t added = sum.countAdded(), moved = countMoved(scope);
  if (kMovedOfPart * added <= moved)
    return std::nullopt;
  return because(kernel,
                 "each program would have {0} elements of its own, and moves "
                 "no more than {1}, less than {2} times as many",
                 added, moved, kMovedOfPart);
}
