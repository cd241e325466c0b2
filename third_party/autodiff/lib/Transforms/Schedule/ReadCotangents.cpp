//===- ReadCotangents.cpp - Read upstream gradients where they are --------===//
#include "ArgumentUses.h"
#include "ShadowPointers.h"
#include "autodiff/Analysis/FinalStores.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Rules/Tile.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_READCOTANGENTS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct ReadCotangents : autodiff::impl::ReadCotangentsBase<ReadCotangents> {
  using ReadCotangentsBase::ReadCotangentsBase;

  void transform() override;
  bool mayRead(unsigned argument, ArgumentUse &use, CheckAttr &check);
  bool overwritesWhatItLoads(const ArgumentUse &use);
  LogicalResult read(unsigned argument, ArgumentUse &use, CheckAttr check);

  triton::FuncOp backward;
  llvm::DenseMap<unsigned, Operation *> sites;
};
} // namespace

/// Whether the kernel loads an argument before it stores to it.
bool ReadCotangents::overwritesWhatItLoads(const ArgumentUse &use) {
  MemoryFlow flow(getDifferentiated(getOperation()));
  return llvm::all_of(use.accumulates, [&](AccumulateOp op) {
    Operation *load = sites.lookup(op.getSite());
    return isa<triton::LoadOp>(load) && flow.getWritesSeenBy(load).empty();
  });
}

/// Whether nothing is added to a cotangent and nothing hides it: the kernel
/// stores to each address once, given `check` (null: in any case). If it loads
/// the argument, too, and then overwrites all of it, what was there is another
/// tensor; so it is with what it does not load.
bool ReadCotangents::mayRead(unsigned argument, ArgumentUse &use,
                             CheckAttr &check) {
  bool isLoaded = !use.accumulates.empty();
  bool isInput = isLoaded || backward.getArgAttr(argument, kWantedAttr);
  if (use.upstreams.empty() ||
      !backward.getArgAttr(argument, kHasCotangentAttr) ||
      (isLoaded && !overwritesWhatItLoads(use)))
    return false;
  SmallVector<UpstreamOp> hiding = llvm::filter_to_vector(
      use.upstreams, [](UpstreamOp op) { return !op.getKeep(); });
  if (hiding.empty())
    return !isInput;
  SmallVector<Operation *> stores;
  for (UpstreamOp op : use.upstreams)
    stores.push_back(sites.lookup(op.getSite()));
  std::optional<AccessSpace> space = findDistinct(stores, argument, exchange);
  if (!space || (isLoaded && !space->isExact()))
    return false;
  check = space->toCheck(isLoaded ? CheckKind::Bijective : CheckKind::Distinct,
                         argument);
  return true;
}

LogicalResult ReadCotangents::read(unsigned argument, ArgumentUse &use,
                                   CheckAttr check) {
  BlockArgument primal = backward.getArgument(argument);
  Type element = cast<triton::PointerType>(primal.getType()).getPointeeType();
  BlockArgument cotangent =
      appendShadow(backward, primal, OperandKind::Cotangent, element, {});
  if (check && !mutation::isMade("schedule:no check of the outputs"))
    PlanOp::getOrCreate(getOperation())
        .require(
            OperandAttr::get(&getContext(), OperandKind::Cotangent, argument),
            check);
  // The gradient of what was loaded before starts from nothing. If nothing was,
  // it is the cotangent, but for what the kernel overwrites.
  bool isOnlyOverwritten =
      use.accumulates.empty() && backward.getArgAttr(argument, kWantedAttr);
  if (!isOnlyOverwritten)
    backward.removeArgAttr(argument, kHasCotangentAttr);
  ShadowPointers shadow(primal, cotangent);
  for (UpstreamOp op : use.upstreams) {
    if (Value result = op.getResult()) {
      Value pointer = shadow.get(op.getPtr());
      if (!pointer)
        return failure();
      OpBuilder b(op);
      Type stored = withElementType(result.getType(), element);
      Value mask = shadow.mask(op.getPtr(), op.getMask(), b);
      Value other = mask ? constantOf(b, op.getLoc(), stored, 0.0) : Value();
      Value value =
          triton::LoadOp::create(b, op.getLoc(), pointer, mask, other);
      result.replaceAllUsesWith(castFloat(
          b, op.getLoc(), value, getElementTypeOrSelf(result.getType())));
    }
    if (isOnlyOverwritten) {
      OpBuilder b(op);
      UpstreamOp::create(b, op.getLoc(), Type(), op.getPtr(), op.getMask(),
                         op.getArgument(), op.getSite(), /*keep=*/false,
                         /*read=*/true);
    }
    op.erase();
  }
  return success();
}

void ReadCotangents::transform() {
  triton::FuncOp primal = getDifferentiated(getOperation());
  SmallVector<triton::FuncOp> backwards = getBackwards(getOperation());
  backward = backwards.front();
  sites = collectSites(primal);
  for (auto &[argument, use] : collectUses(backward)) {
    CheckAttr check;
    if (mayRead(argument, use, check) && failed(read(argument, use, check)))
      return signalPassFailure();
  }
}
