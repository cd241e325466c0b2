//===- ReuseOutputs.cpp - Read what an equal launch has stored ------------===//
//
// A second derivative runs the forward again, for its tangents. That of a mean
// y = a/l, say, is (ȧ − y·l̇)/l: if memory still holds y, then a, which took a
// product of tiles in each iteration, is not needed.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Forward/Passes.h"

#include "autodiff/Analysis/FinalStores.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Forward/LiveValues.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_REUSEOUTPUTS
#include "autodiff/Forward/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct ReuseOutputs : autodiff::impl::ReuseOutputsBase<ReuseOutputs> {
  using ReuseOutputsBase::ReuseOutputsBase;

  void runOnOperation() override;
  void load(triton::StoreOp store);
};

/// A value that a kernel stores, as it was computed and as it is stored.
struct Stored {
  explicit Stored(triton::StoreOp store) : store(store) {
    auto rounding = store.getValue().getDefiningOp<arith::TruncFOp>();
    computed = rounding ? rounding.getIn() : store.getValue();
    isRounded = rounding;
  }

  bool mayBeLoaded();
  Value load(RewriterBase &b);

  triton::StoreOp store;
  Value computed;
  bool isRounded;
};
} // namespace

static int64_t countProducts(triton::FuncOp kernel) {
  LiveValues live(kernel);
  int64_t count = 0;
  kernel.walk([&](triton::DotOp dot) { count += live.contains(dot); });
  return count;
}

/// The stores to an argument, if the kernel does nothing else with its memory.
static std::optional<SmallVector<triton::StoreOp>>
findStores(triton::FuncOp kernel, BlockArgument argument) {
  SmallVector<triton::StoreOp> stores;
  bool isOnlyStored = true;
  kernel.walk([&](Operation *op) {
    Value pointer = getAccessedPointer(op);
    if (!pointer || !mayPointInto(pointer, argument))
      return;
    auto store = dyn_cast<triton::StoreOp>(op);
    isOnlyStored &= store && getBaseArgument(pointer) == argument;
    if (store)
      stores.push_back(store);
  });
  if (!isOnlyStored)
    return std::nullopt;
  return stores;
}

/// Whether a relative error of an operand is one of the result.
static bool keepsRelativeError(Operation *op) {
  return isa<arith::MulFOp, arith::NegFOp, arith::TruncFOp, math::AbsFOp>(op) ||
         (isa<arith::SubFOp>(op) &&
          matchPattern(op->getOperand(0), m_AnyZeroFloat()));
}

/// Whether all that depends on the value is stored to the same lanes, and
/// rounded as the value is. It is a factor there, so that its rounding is
/// relative to what it is part of.
bool Stored::mayBeLoaded() {
  Operation *op = computed.getDefiningOp();
  if (!op || op->getBlock() != store->getBlock())
    return false;
  Type element = getElementTypeOrSelf(store.getValue().getType());
  if (isRounded && !element.isBF16() &&
      !mutation::isMade("reuse-outputs:rounded to any type"))
    return false;
  SetVector<Operation *> dependents;
  getForwardSlice(computed, &dependents);
  auto dependsOnIt = [&](Value value) {
    return value && dependents.contains(value.getDefiningOp());
  };
  if (dependsOnIt(store.getPtr()) || dependsOnIt(store.getMask()))
    return false;
  return llvm::all_of(dependents, [&](Operation *user) {
    if (auto other = dyn_cast<triton::StoreOp>(user))
      return other == store ||
             ((!store.getMask() || other.getMask() == store.getMask()) &&
              getElementTypeOrSelf(other.getValue().getType()) == element);
    bool isFactor = !llvm::is_contained(user->getOperands(), computed) ||
                    keepsRelativeError(user);
    return isFactor && user->hasTrait<OpTrait::Elementwise>();
  });
}

/// The value as memory holds it, before it would be computed; null if its
/// address is not known there.
Value Stored::load(RewriterBase &b) {
  Operation *place = computed.getDefiningOp();
  SmallVector<Value> where = {store.getPtr()};
  if (store.getMask())
    where.push_back(store.getMask());
  if (failed(moveValueDefinitions(b, where, place)))
    return {};
  b.setInsertionPoint(place);
  Location loc = store.getLoc();
  Value other;
  if (store.getMask())
    other = arith::ConstantOp::create(
        b, loc, b.getZeroAttr(store.getValue().getType()));
  Value value =
      triton::LoadOp::create(b, loc, store.getPtr(), store.getMask(), other);
  return isRounded ? arith::ExtFOp::create(b, loc, computed.getType(), value)
                   : value;
}

/// Loads a value in place of what is computed of it, if that saves a product.
void ReuseOutputs::load(triton::StoreOp store) {
  Stored stored(store);
  if (!stored.mayBeLoaded())
    return;
  IRRewriter b(&getContext());
  b.setInsertionPoint(stored.computed.getDefiningOp());
  // As if it was there.
  auto uses = llvm::map_to_vector(stored.computed.getUses(),
                                  [](OpOperand &use) { return &use; });
  auto replaceBy = [&](Value value) {
    for (OpOperand *use : uses)
      use->set(value);
  };
  int64_t before = countProducts(getOperation());
  auto stand = arith::ConstantOp::create(
      b, store.getLoc(), b.getZeroAttr(stored.computed.getType()));
  replaceBy(stand);
  bool saves = countProducts(getOperation()) < before;
  Value value = saves ? stored.load(b) : Value();
  replaceBy(value ? value : stored.computed);
  stand.erase();
}

void ReuseOutputs::runOnOperation() {
  triton::FuncOp kernel = getOperation();
  if (getRole(kernel) != "tangent")
    return;
  FinalStores final(kernel, /*repeated=*/{});
  for (unsigned number : left) {
    BlockArgument argument = kernel.getArgument(number);
    auto stores = findStores(kernel, argument);
    if (!stores)
      continue;
    // Of several stores to an element, memory holds what the last one left.
    if (stores->size() == 1 && final.contains(stores->front()))
      load(stores->front());
    for (triton::StoreOp store : *stores)
      store.erase();
    kernel.setArgAttr(number, kLeftAttr, UnitAttr::get(&getContext()));
  }
}
