//===- ForwardStores.cpp - Loads of what was just stored ------------------===//
//
// In
//
//   store p, v; …; x = load p
//
// x is v, if each lane has its own address and nothing in between writes there.
// Kernels do so to give a vector another layout. Through memory, the derivative
// would need a tape. (Another program may write there only while this one waits
// for it; otherwise it is a race in the user's kernel.)
//
//===----------------------------------------------------------------------===//
#include "Programs/Guards.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/LaneSteps.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Analysis/Synchronization.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_FORWARDSTORES
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct ForwardStores : autodiff::impl::ForwardStoresBase<ForwardStores> {
  void transform() override;
};
} // namespace

/// Whether each lane of `store` has a distinct address: going through the axes,
/// each step is larger than the range of the axes before. This also holds for
/// 32-bit offsets that wrap around.
static bool hasDistinctLanes(triton::StoreOp store) {
  auto tile = dyn_cast<RankedTensorType>(store.getValue().getType());
  if (!tile || mutation::isMade("forward-stores:lanes that share an address"))
    return true;
  SmallVector<std::pair<uint64_t, uint64_t>> axes;
  for (auto [axis, length] : llvm::enumerate(tile.getShape()))
    if (length > 1)
      axes.emplace_back(
          llvm::AbsoluteValue(findLaneStep(store.getPtr(), axis).value_or(0)),
          length);
  llvm::sort(axes);
  uint64_t span = 0;
  for (auto [step, length] : axes) {
    if (step <= span)
      return false;
    span = llvm::SaturatingMultiplyAdd(step, length - 1, span);
  }
  return span <= std::numeric_limits<uint32_t>::max();
}

/// Whether `load` has to read memory, since others may write to it meanwhile.
static bool isFresh(triton::LoadOp load) {
  return load.getIsVolatile() || load.getCache() == triton::CacheModifier::CV;
}

/// Whether `op` itself does not change what `pointer` points to, and does not
/// wait for other programs.
static bool isHarmless(Operation *op, Value pointer) {
  if (auto load = dyn_cast<triton::LoadOp>(op))
    return !isFresh(load);
  if (auto store = dyn_cast<triton::StoreOp>(op))
    return isElsewhere(store, pointer);
  return op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
         op->hasTrait<OpTrait::IsTerminator>() || isMemoryEffectFree(op) ||
         isa<gpu::BarrierOp, triton::gpu::BarrierOp>(op);
}

static bool mayChangeBetween(Operation *first, Operation *last, Value pointer) {
  for (Operation *op = first->getNextNode(); op != last; op = op->getNextNode())
    if (op->walk([&](Operation *inner) {
            return isHarmless(inner, pointer) ? WalkResult::advance()
                                              : WalkResult::interrupt();
          }).wasInterrupted())
      return !mutation::isMade("forward-stores:stores in between");
  return false;
}

/// Whether `load` reads, in its lanes, what `store` has stored.
static bool readsWhatIsStored(triton::LoadOp load, triton::StoreOp store) {
  Value pointer = load.getPtr(), mask = store.getMask();
  if (load->getBlock() != store->getBlock() || !store->isBeforeInBlock(load) ||
      isFresh(load) || isPointer(load.getType()) ||
      getBaseArguments(pointer).empty())
    return false;
  bool isCovered = !mask || mask == load.getMask() ||
                   mutation::isMade("forward-stores:other masks");
  return isCovered && hasDistinctLanes(store) &&
         !mayChangeBetween(store, load, pointer);
}

void ForwardStores::transform() {
  triton::FuncOp primal = getPrimal(getOperation());
  Synchronization synchronization(primal);
  // For each load, the last of several stores.
  llvm::MapVector<triton::LoadOp, triton::StoreOp> found;
  primal.walk([&](triton::StoreOp store) {
    for (Operation *user : store.getPtr().getUsers())
      if (auto load = dyn_cast<triton::LoadOp>(user))
        if (readsWhatIsStored(load, store) && !synchronization.orders(load))
          found[load] = store;
  });
  IRRewriter rewriter(&getContext());
  for (auto [load, store] : found) {
    rewriter.setInsertionPoint(load);
    rewriter.replaceOp(load, whereLoaded(rewriter, store.getValue(), load));
  }
}
