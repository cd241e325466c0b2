//===- SinkStores.cpp - What both sides of a branch store -----------------===//
//
// In
//
//   if (c) { …; *p = a } else { …; *p = b }
//
// the stored value becomes a result of the branch, and one store follows it,
// even if a side stores something else afterwards. With one store, analyses see
// that each program stores to p exactly once. And if one side does nothing
// else, the other side may be all that the kernel does (FlattenReturns.cpp).
//
//===----------------------------------------------------------------------===//
#include "Branches.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Support/Mutation.h"
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

/// The stores of a side of a branch after which it does not access that memory,
/// the last one first.
static SmallVector<triton::StoreOp> findLastStores(Block &side) {
  SmallVector<triton::StoreOp> behind, found;
  for (Operation &op : llvm::reverse(side)) {
    if (isMemoryEffectFree(&op))
      continue;
    auto store = dyn_cast<triton::StoreOp>(op);
    if (!store)
      break;
    if (llvm::all_of(behind, [&](triton::StoreOp later) {
          return isElsewhere(later, store.getPtr());
        }))
      found.push_back(store);
    behind.push_back(store);
  }
  return found;
}

/// The attributes of a store without its number.
static DictionaryAttr getHints(triton::StoreOp store) {
  NamedAttrList attributes(store->getAttrDictionary());
  attributes.erase(kSiteAttr);
  return attributes.getDictionary(store.getContext());
}

/// Hoists a value of a side above the branch; false if that is not possible.
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

/// Whether both sides of a branch store to the same pointer with the same mask,
/// which are then computed above it.
static bool storeToTheSame(triton::StoreOp onTrue, triton::StoreOp onFalse,
                           scf::IfOp branch) {
  if (onTrue.getValue().getType() != onFalse.getValue().getType() ||
      getHints(onTrue) != getHints(onFalse))
    return false;
  for (triton::StoreOp store : {onTrue, onFalse})
    if (!hoist(store.getPtr(), branch) || !hoist(store.getMask(), branch))
      return false;
  IRRewriter rewriter(branch);
  DominanceInfo dominance(branch->getParentOp());
  eliminateCommonSubExpressions(rewriter, dominance, branch->getParentOp());
  bool isSame = onTrue.getPtr() == onFalse.getPtr() ||
                mutation::isMade("sink-stores:other places");
  return isSame && onTrue.getMask() == onFalse.getMask();
}

/// Replaces a store on each side by one behind the branch, and returns the
/// branch with the stored value; null if no two stores match.
static scf::IfOp sinkStore(scf::IfOp branch) {
  for (triton::StoreOp onTrue : findLastStores(*branch.thenBlock()))
    for (triton::StoreOp onFalse : findLastStores(*branch.elseBlock())) {
      if (!storeToTheSame(onTrue, onFalse, branch))
        continue;
      Value chosen = addResult(branch, onTrue.getValue(), onFalse.getValue());
      onTrue->moveAfter(branch);
      onTrue.getValueMutable().assign(chosen);
      onFalse.erase();
      return branch;
    }
  return {};
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
