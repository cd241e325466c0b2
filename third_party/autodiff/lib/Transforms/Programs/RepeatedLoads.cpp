//===- RepeatedLoads.cpp - Loads of what a program has --------------------===//
#include "RepeatedLoads.h"

#include "Guards.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// The values that a kernel has loaded and stored, before one of its
/// operations.
class Held {
public:
  Held(triton::FuncOp kernel, ArrayRef<triton::StoreOp> distinct);

  /// The value that `load` would load; null if it is not known.
  Value get(OpBuilder &b, triton::LoadOp load) const;
  void add(triton::LoadOp load);
  void add(triton::StoreOp store);

private:
  bool isOnlyWrittenBy(Value pointer, ArrayRef<triton::StoreOp> writers) const;

  SmallVector<Operation *> writing;
  ArrayRef<triton::StoreOp> distinct;
  SmallVector<triton::LoadOp> loads;
  SmallVector<triton::StoreOp> stores;
};
} // namespace

Held::Held(triton::FuncOp kernel, ArrayRef<triton::StoreOp> distinct)
    : distinct(distinct) {
  kernel.walk([&](Operation *op) {
    if (getAccessedPointer(op) && mayWrite(op))
      writing.push_back(op);
  });
}

bool Held::isOnlyWrittenBy(Value pointer,
                           ArrayRef<triton::StoreOp> writers) const {
  return llvm::all_of(writing, [&](Operation *op) {
    return !mayAlias(getAccessedPointer(op), pointer) ||
           llvm::is_contained(writers, op);
  });
}

void Held::add(triton::LoadOp load) {
  if (isOnlyWrittenBy(load.getPtr(), {}))
    loads.push_back(load);
}

void Held::add(triton::StoreOp store) {
  if (!isPointer(store.getValue().getType()) &&
      isOnlyWrittenBy(store.getPtr(), distinct))
    stores.push_back(store);
}

Value Held::get(OpBuilder &b, triton::LoadOp load) const {
  for (triton::LoadOp other : loads)
    if (llvm::equal(load->getOperands(), other->getOperands()))
      return other;
  for (triton::StoreOp store : llvm::reverse(stores))
    if (store.getPtr() == load.getPtr() && store.getMask() == load.getMask())
      return whereLoaded(b, store.getValue(), load);
  return {};
}

void mlir::autodiff::dropRepeatedLoads(triton::FuncOp kernel,
                                       ArrayRef<triton::StoreOp> distinct) {
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance(kernel);
  eliminateCommonSubExpressions(rewriter, dominance, kernel);
  Held held(kernel, distinct);
  for (Operation &op : llvm::make_early_inc_range(kernel.front())) {
    if (auto store = dyn_cast<triton::StoreOp>(op))
      held.add(store);
    auto load = dyn_cast<triton::LoadOp>(op);
    if (!load || load.getIsVolatile())
      continue;
    rewriter.setInsertionPoint(load);
    if (Value value = held.get(rewriter, load))
      rewriter.replaceOp(load, value);
    else
      held.add(load);
  }
}
