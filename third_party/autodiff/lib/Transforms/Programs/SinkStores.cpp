//===- SinkStores.cpp - What both sides of a branch store -----------------===//
//
//   if (c) { …; *p = a } else { …; *p = b }
//
// stores what the branch chooses. With one store, it is seen that each program
// stores to p, and once; and where one side does nothing else, the other one
// may be all that the kernel does (FlattenReturns.cpp).
//
//===----------------------------------------------------------------------===//
#include "Branches.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SINKSTORES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct SinkStores : autodiff::impl::SinkStoresBase<SinkStores> {
  void transform() override;
};
} // namespace

/// The store that is the last thing that a side of a branch does to memory.
static triton::StoreOp findLastStore(Block &side) {
  for (Operation &op : llvm::reverse(side))
    if (!isMemoryEffectFree(&op))
      return dyn_cast<triton::StoreOp>(op);
  return {};
}

/// The attributes of a store, but for its number.
static DictionaryAttr getHints(triton::StoreOp store) {
  NamedAttrList attributes(store->getAttrDictionary());
  attributes.erase(kSiteAttr);
  return attributes.getDictionary(store.getContext());
}

/// Computes a value of a side in front of the branch; false if that is not
/// possible.
static bool hoist(Value value, scf::IfOp branch) {
  if (!value)
    return true;
  llvm::SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *op) { return branch->isProperAncestor(op); };
  (void)getBackwardSlice(value, &slice, options);
  if (!llvm::all_of(slice, [](Operation *op) {
        return op->getNumRegions() == 0 && isPure(op);
      }))
    return false;
  for (Operation *op : slice)
    op->moveBefore(branch);
  return true;
}

/// Lets one store behind the branch do what the last ones of both sides do, and
/// returns the branch with what it is given; null if that is not the same.
static scf::IfOp sinkStore(scf::IfOp branch) {
  triton::StoreOp onTrue = findLastStore(*branch.thenBlock());
  triton::StoreOp onFalse = findLastStore(*branch.elseBlock());
  if (!onTrue || !onFalse ||
      onTrue.getValue().getType() != onFalse.getValue().getType() ||
      getHints(onTrue) != getHints(onFalse))
    return {};
  for (triton::StoreOp store : {onTrue, onFalse})
    if (!hoist(store.getPtr(), branch) || !hoist(store.getMask(), branch))
      return {};
  IRRewriter rewriter(branch);
  DominanceInfo dominance(branch->getParentOp());
  eliminateCommonSubExpressions(rewriter, dominance, branch->getParentOp());
  bool isSame = onTrue.getPtr() == onFalse.getPtr() ||
                mutation::isMade("sink-stores:other places");
  if (!isSame || onTrue.getMask() != onFalse.getMask())
    return {};
  Value chosen = addResult(branch, onTrue.getValue(), onFalse.getValue());
  onTrue->moveAfter(branch);
  onTrue.getValueMutable().assign(chosen);
  onFalse.erase();
  return branch;
}

void SinkStores::transform() {
  triton::FuncOp primal = getPrimal(getOperation());
  SmallVector<scf::IfOp> branches;
  primal.walk([&](scf::IfOp branch) {
    if (branch.elseBlock())
      branches.push_back(branch);
  });
  for (scf::IfOp branch : branches)
    while (branch)
      branch = sinkStore(branch);
}
