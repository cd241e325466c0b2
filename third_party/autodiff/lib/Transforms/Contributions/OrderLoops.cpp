//===- OrderLoops.cpp - Run loops in the forward's order ------------------===//
#include "ParallelLoop.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

#include "mlir/IR/Matchers.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_ORDERLOOPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("order-loops");

/// Whether a carried value is only added to, by the loop or by inner loops that
/// carry it on, and not read before the loop has ended.
static bool isSum(BlockArgument carried, Value next) {
  Value sum = carried;
  if (sum != next && !next.hasOneUse())
    return false;
  while (sum != next) {
    if (!sum.hasOneUse())
      return false;
    OpOperand &use = *sum.use_begin();
    Operation *user = use.getOwner();
    if (user->getBlock() != carried.getOwner())
      return false;
    if (auto inner = dyn_cast<scf::ForOp>(user)) {
      BlockArgument handedOn = inner.getTiedLoopRegionIterArg(&use);
      if (!handedOn ||
          !isSum(handedOn, inner.getTiedLoopYieldedValue(handedOn)->get()))
        return false;
      sum = inner.getTiedLoopResult(handedOn);
      continue;
    }
    auto dot = dyn_cast<triton::DotOp>(user);
    if (!isa<arith::AddFOp>(user) && !(dot && dot.getC() == sum))
      return false;
    sum = user->getResult(0);
  }
  // A value that is yielded unchanged is no sum, but its order does not matter.
  return true;
}

/// Why a loop must run in order: its iterations do more than load and add.
Obstacle mlir::autodiff::findOrder(scf::ForOp loop) {
  Operation *ordered = nullptr;
  loop.getBody()->walk([&](Operation *op) {
    bool adds = isa<AccumulateOp, triton::LoadOp>(op) ||
                op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                isMemoryEffectFree(op);
    ordered = adds ? nullptr : op;
    return adds ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (ordered)
    return because(loop,
                   "iterations of the loop at {0} have an order, as they write "
                   "to memory at {1}",
                   loop, ordered);
  for (auto [carried, next] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues()))
    if (!isSum(carried, next)) {
      Operation *update = next.getDefiningOp();
      return because(
          loop,
          "iterations of the loop at {0} have an order: each goes on "
          "with what the one before has left, at {1}, which is no "
          "sum",
          loop, update ? update : loop.getOperation());
    }
  return std::nullopt;
}

/// Whether `value` is one less than the loop's number of iterations.
static bool isLastNumber(Value value, scf::ForOp loop) {
  APInt last, count;
  if (matchPattern(value, m_ConstantInt(&last)))
    return matchPattern(loop.getUpperBound(), m_ConstantInt(&count)) &&
           last == count - 1;
  auto difference = value.getDefiningOp<arith::SubIOp>();
  return difference && difference.getLhs() == loop.getUpperBound() &&
         matchPattern(difference.getRhs(), m_One());
}

/// The operations that compute count − 1 − i in a loop over i; none if it uses
/// i in another way.
static std::optional<SmallVector<Operation *>> findNumbers(scf::ForOp loop) {
  if (!matchPattern(loop.getLowerBound(), m_Zero()) ||
      !matchPattern(loop.getStep(), m_One()))
    return std::nullopt;
  SmallVector<Operation *> numbers;
  for (Operation *user : loop.getInductionVar().getUsers()) {
    auto number = dyn_cast<arith::SubIOp>(user);
    if (!number || number.getRhs() != loop.getInductionVar() ||
        !isLastNumber(number.getLhs(), loop))
      return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

namespace {
struct OrderLoops : autodiff::impl::OrderLoopsBase<OrderLoops> {
  void runOnOperation() override {
    if (getRole(getOperation()) != "backward")
      return;
    getOperation().walk([](scf::ForOp loop) {
      std::optional<SmallVector<Operation *>> numbers = findNumbers(loop);
      if (!numbers)
        return;
      if (Obstacle order = findOrder(loop);
          order && !mutation::isMade("order-loops:any loop"))
        return kRemarks.missed(loop, *order);
      kRemarks.passed(loop, "its iterations only add up, and stand alone");
      for (Operation *number : *numbers) {
        number->replaceAllUsesWith(ValueRange{loop.getInductionVar()});
        number->erase();
      }
      loop->setAttr(kParallelAttr, UnitAttr::get(loop.getContext()));
    });
  }
};
} // namespace
