//===- StoredStates.cpp - What a loop stores of what it carries -----------===//
#include "autodiff/Analysis/StoredStates.h"

#include "autodiff/Analysis/LinearForm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::autodiff;

SmallVector<StoredState> mlir::autodiff::findStoredStates(scf::ForOp loop,
                                                          unsigned index) {
  SmallVector<StoredState> states;
  auto collect = [&](Value value, bool isBefore) {
    SmallVector<Operation *> users(value.getUsers());
    for (Operation *user : value.getUsers())
      if (isa<arith::TruncFOp>(user))
        llvm::append_range(users, user->getUsers());
    for (Operation *user : users) {
      auto store = dyn_cast<triton::StoreOp>(user);
      if (store && store->getBlock() == loop.getBody())
        states.push_back({store, isBefore});
    }
  };
  collect(loop.getRegionIterArg(index), /*isBefore=*/true);
  collect(loop.getYieldedValues()[index], /*isBefore=*/false);
  return states;
}

void mlir::autodiff::markState(StoredState state, unsigned index,
                               CheckAttr check) {
  Builder b(check.getContext());
  state.store->setAttr(
      kStateAttr, b.getDictionaryAttr(
                      {b.getNamedAttr("carried", b.getI32IntegerAttr(index)),
                       b.getNamedAttr("check", check)}));
}

StoredState mlir::autodiff::findMarkedState(scf::ForOp loop, unsigned index) {
  for (StoredState state : findStoredStates(loop, index)) {
    auto mark = state.store->getAttrOfType<DictionaryAttr>(kStateAttr);
    if (mark && mark.getAs<IntegerAttr>("carried").getInt() == index)
      return state;
  }
  return {};
}

CheckAttr mlir::autodiff::getStateCheck(StoredState state) {
  return state.store->getAttrOfType<DictionaryAttr>(kStateAttr)
      .getAs<CheckAttr>("check");
}

std::optional<SmallVector<Operation *>>
mlir::autodiff::findPlace(scf::ForOp loop, Value pointer) {
  llvm::SetVector<Operation *> slice;
  SmallVector<Value> pending{pointer};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (loop.isDefinedOutsideOfLoop(value) || value == loop.getInductionVar())
      continue;
    Operation *op = value.getDefiningOp();
    if (!op) {
      // Other carried values in the address must advance by the same in all
      // iterations.
      if (!LinearForm::of(value, {}, ScalarExpr::From::Memory))
        return std::nullopt;
      continue;
    }
    if (op->getBlock() != loop.getBody() || op->getNumRegions() != 0 ||
        !isMemoryEffectFree(op))
      return std::nullopt;
    if (slice.insert(op))
      llvm::append_range(pending, op->getOperands());
  }
  SmallVector<Operation *> ops = slice.takeVector();
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ops;
}
