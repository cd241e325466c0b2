//===- MarkStores.cpp - Where programs store, and what tells values apart -===//
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/Deciders.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_MARKSTORES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;
using llvm::json::Object;

namespace {
struct MarkStores : autodiff::impl::MarkStoresBase<MarkStores> {
  void transform() override;
};
} // namespace

/// A store as the plan describes it; none if the launch cannot tell exactly
/// where it goes.
static std::optional<Object> describe(triton::StoreOp store,
                                      triton::FuncOp kernel) {
  BlockArgument base = getBaseArgument(store.getPtr());
  if (!base || !isFloat(getPointee(base.getType())))
    return std::nullopt;
  std::optional<AccessSpace> space = AccessSpace::reachOf(store);
  if (!space || !space->isExact())
    return std::nullopt;
  Object object{{"argument", base.getArgNumber()},
                {"position", spellPosition(store.getLoc())},
                {"reach", space->toReach()},
                {"deciders", nullptr}};
  auto deciders = findDeciders(store, kernel);
  if (!deciders)
    return object;
  Array sums;
  for (const LinearForm &sum : *deciders) {
    Array digits;
    for (const LinearForm::Term &term : sum.terms)
      digits.push_back(toDigit(term.dimension, term.coefficient, nullptr));
    if (!mutation::isMade("stores:what decides a value"))
      sums.push_back(std::move(digits));
  }
  object["deciders"] = std::move(sums);
  return object;
}

void MarkStores::transform() {
  triton::FuncOp primal = getPrimal(getOperation());
  llvm::MapVector<unsigned, SmallVector<Operation *>> byArgument;
  primal.walk([&](triton::StoreOp store) {
    for (BlockArgument base : getBaseArguments(store.getPtr()))
      byArgument[base.getArgNumber()].push_back(store);
  });
  Array stores;
  for (auto &[argument, ops] : byArgument) {
    // Then nobody need look at each of the places.
    std::optional<AccessSpace> all = AccessSpace::ofAll(ops);
    for (Operation *op : ops)
      if (auto object = describe(cast<triton::StoreOp>(op), primal)) {
        if (all)
          (*object)["check"] = all->toCheck("distinct", argument);
        stores.push_back(std::move(*object));
      }
  }
  if (!stores.empty())
    getOperation()->setAttr(kStoresAttr,
                            toAttribute(&getContext(), std::move(stores)));
}
