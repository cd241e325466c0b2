//===- OrderLoops.cpp - Run loops in the forward's order ------------------===//
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_ORDERLOOPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Whether a carried value is only ever added to, by the loop or by loops in it
/// that hand it on, and nothing reads it before the loop has ended.
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
  // A value that is yielded as it came is no sum, but keeps any order.
  return true;
}

/// Whether the iterations may run in any order: they read memory, and add.
static bool isOrderFree(scf::ForOp loop) {
  WalkResult walk = loop.getBody()->walk([](Operation *op) {
    bool adds = isa<AccumulateOp, triton::LoadOp>(op) ||
                op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                isMemoryEffectFree(op);
    return adds ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walk.wasInterrupted() &&
         llvm::all_of(
             llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues()),
             [](auto pair) {
               return isSum(std::get<0>(pair), std::get<1>(pair));
             });
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

/// The numbers count − 1 − i that a loop over i computes; none if it uses i in
/// another way.
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
      if (!numbers ||
          (!isOrderFree(loop) && !mutation::isMade("order-loops:any loop")))
        return;
      for (Operation *number : *numbers) {
        number->replaceAllUsesWith(ValueRange{loop.getInductionVar()});
        number->erase();
      }
      loop->setAttr(kParallelAttr, UnitAttr::get(loop.getContext()));
    });
  }
};
} // namespace
