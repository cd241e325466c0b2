//===- MarkStores.cpp - Where programs store, and what tells values apart -===//
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/Deciders.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MARKSTORES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct MarkStores : autodiff::impl::MarkStoresBase<MarkStores> {
  void transform() override;
};
} // namespace

/// The addresses of a store; null if a launch cannot compute them exactly.
/// `all` checks that all stores to the argument are distinct.
static StoredAttr describe(triton::StoreOp store, triton::FuncOp kernel,
                           CheckAttr all) {
  MLIRContext *context = kernel.getContext();
  BlockArgument base = getBaseArgument(store.getPtr());
  if (!base || !isFloat(getPointee(base.getType())))
    return {};
  std::optional<AccessSpace> space = AccessSpace::reachOf(store);
  if (!space || !space->isExact())
    return {};
  ArrayAttr sums;
  if (auto deciders = findDeciders(store, kernel)) {
    SmallVector<Attribute> all;
    for (const LinearForm &sum : *deciders)
      if (!mutation::isMade("stores:what decides a value"))
        all.push_back(toDigits(context, sum));
    sums = ArrayAttr::get(context, all);
  }
  auto position = StringAttr::get(context, spellPosition(store.getLoc()));
  return StoredAttr::get(context, base.getArgNumber(), position,
                         space->toReach(), sums, all);
}

void MarkStores::transform() {
  // The attribute is about the user's launch, not a rearranged one.
  if (PlanOp plan = PlanOp::of(getOperation());
      plan && (!plan.getItems<StoredOp>().empty() ||
               !plan.getItems<RearrangedOp>().empty()))
    return;
  triton::FuncOp primal = getPrimal(getOperation());
  llvm::MapVector<unsigned, SmallVector<Operation *>> byArgument;
  primal.walk([&](triton::StoreOp store) {
    for (BlockArgument base : getBaseArguments(store.getPtr()))
      byArgument[base.getArgNumber()].push_back(store);
  });
  for (auto &[argument, ops] : byArgument) {
    // If this check holds, the launch need not look at each element.
    std::optional<AccessSpace> all = AccessSpace::ofAll(ops);
    CheckAttr check =
        all ? all->toCheck(CheckKind::Distinct, argument) : CheckAttr();
    for (Operation *op : ops)
      if (auto stored = describe(cast<triton::StoreOp>(op), primal, check))
        PlanOp::getOrCreate(getOperation()).add<StoredOp>(stored);
  }
}
