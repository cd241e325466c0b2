//===- MarkStores.cpp - Where programs store, and what tells values apart -===//
#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/Deciders.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/StoredFunctions.h"
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

static ArrayAttr toSums(MLIRContext *context, ArrayRef<LinearForm> sums) {
  SmallVector<Attribute> all;
  for (const LinearForm &sum : sums)
    if (!mutation::isMade("stores:what decides a value"))
      all.push_back(toDigits(context, sum));
  return ArrayAttr::get(context, all);
}

static bool isExact(const std::optional<AccessSpace> &space) {
  return space && space->isExact();
}

/// What a launch knows of a store, whose addresses it computes exactly; null if
/// it cannot.
/// `all` checks that all stores to the argument are distinct, or if they are
/// exact, that they are its elements. `function` is one that other stores have,
/// too.
static StoredAttr describe(triton::StoreOp store,
                           const std::optional<AccessSpace> &space,
                           triton::FuncOp kernel,
                           const StoredFunction *function, CheckAttr all) {
  MLIRContext *context = kernel.getContext();
  BlockArgument base = getBaseArgument(store.getPtr());
  if (!base || !isFloat(getPointee(base.getType())))
    return {};
  if (!isExact(space))
    return {};
  ArrayAttr sums;
  IntegerAttr number;
  DenseI64ArrayAttr exchange;
  if (function) {
    sums = toSums(context, function->arguments);
    number = Builder(context).getI64IntegerAttr(function->number);
    if (!function->exchange.empty())
      exchange = DenseI64ArrayAttr::get(context, function->exchange);
  } else if (auto deciders = findDeciders(store, kernel)) {
    sums = toSums(context, *deciders);
  }
  auto position = StringAttr::get(context, spellPosition(store.getLoc()));
  return StoredAttr::get(context, base.getArgNumber(), position,
                         space->toReach(), sums, number, exchange, all);
}

void MarkStores::transform() {
  // The attribute is about the user's launch, not a rearranged one.
  if (PlanOp plan = PlanOp::of(getOperation());
      plan && (!plan.getItems<StoredOp>().empty() ||
               !plan.getItems<RearrangedOp>().empty()))
    return;
  triton::FuncOp primal = getPrimal(getOperation());
  llvm::MapVector<unsigned, SmallVector<triton::StoreOp>> byArgument;
  primal.walk([&](triton::StoreOp store) {
    for (BlockArgument base : getBaseArguments(store.getPtr()))
      byArgument[base.getArgNumber()].push_back(store);
  });
  for (auto &[argument, stores] : byArgument) {
    // If this check holds, the launch need not look at each element.
    std::optional<AccessSpace> all = AccessSpace::ofAll(
        llvm::map_to_vector(stores, [](auto op) -> Operation * { return op; }));
    SmallVector<std::optional<AccessSpace>> spaces;
    for (triton::StoreOp store : stores)
      spaces.push_back(AccessSpace::reachOf(store));
    bool areExact = isExact(all) && llvm::all_of(spaces, isExact);
    CheckAttr check;
    if (all)
      check = all->toCheck(
          areExact ? CheckKind::Bijective : CheckKind::Distinct, argument);
    auto functions = findStoredFunctions(stores);
    for (auto [store, space, found] :
         llvm::zip_equal(stores, spaces, functions)) {
      const std::optional<StoredFunction> &function = found;
      bool isShared =
          llvm::count_if(functions, [&](const auto &other) {
            return function && other && other->number == function->number;
          }) > 1;
      if (auto stored = describe(store, space, primal,
                                 isShared ? &*function : nullptr, check))
        PlanOp::getOrCreate(getOperation()).add<StoredOp>(stored);
    }
  }
}
