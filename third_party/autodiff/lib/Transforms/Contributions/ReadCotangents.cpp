//===- ReadCotangents.cpp - Read upstream gradients where they are --------===//
#include "ShadowPointers.h"
#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/FinalStores.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/TripCounts.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"
#include "autodiff/Transforms/Remarks.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_READCOTANGENTS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static constexpr Remarks kRemarks("read-cotangents");

namespace {
struct ReadCotangents : autodiff::impl::ReadCotangentsBase<ReadCotangents> {
  using ReadCotangentsBase::ReadCotangentsBase;

  void transform() override;
  ReasonOr<CheckAttr> findCheck(unsigned argument, GradientUse &use);
  Operation *findLoadOfOwn(const GradientUse &use);
  LogicalResult read(unsigned argument, GradientUse &use, CheckAttr check);

  triton::FuncOp backward;
};
} // namespace

/// A load of an argument of what the kernel may have stored there, or added to
/// it; null if there is none.
Operation *ReadCotangents::findLoadOfOwn(const GradientUse &use) {
  MemoryFlow flow(getDifferentiated(getOperation()));
  for (const Contribution &op : use.contributions)
    if (!flow.getWritesSeenBy(op.getLoad()).empty())
      return op.getLoad();
  return nullptr;
}

/// The check with which nothing is added to a cotangent and nothing hides it,
/// as the kernel stores to each address once (null: in any case). If it loads
/// the argument, too, and then overwrites all of it, what was there is another
/// tensor; so it is with what it does not load.
ReasonOr<CheckAttr> ReadCotangents::findCheck(unsigned argument,
                                              GradientUse &use) {
  bool isLoaded = !use.contributions.empty();
  bool isInput = isLoaded || backward.getArgAttr(argument, kWantedAttr);
  if (use.upstreams.empty() ||
      !backward.getArgAttr(argument, kHasCotangentAttr))
    return std::nullopt;
  if (isLoaded)
    if (Operation *load = findLoadOfOwn(use))
      return because(load,
                     "what is loaded at {0} may be what the kernel has "
                     "stored there",
                     load);
  SmallVector<UpstreamOp> hiding = llvm::filter_to_vector(
      use.upstreams, [](UpstreamOp op) { return !op.getKeep(); });
  if (hiding.empty() && isInput)
    return because(backward,
                   "the kernel adds to it, and its content before has a "
                   "gradient, too");
  if (hiding.empty())
    return CheckAttr();
  ReasonOr<AccessSpace> space =
      findDistinct(getAnalysis<Contributions>().getStores(use.upstreams),
                   argument, repeated);
  if (!space)
    return because(backward, "the kernel may store to an element twice: {0}",
                   space.why());
  if (isLoaded && !space->isExact())
    return because(backward,
                   "the kernel loads it, and may not overwrite all of it: {0}",
                   space->whyInexact());
  return space->toCheck(isLoaded ? CheckKind::Bijective : CheckKind::Distinct,
                        argument);
}

LogicalResult ReadCotangents::read(unsigned argument, GradientUse &use,
                                   CheckAttr check) {
  BlockArgument primal = backward.getArgument(argument);
  Type element = cast<triton::PointerType>(primal.getType()).getPointeeType();
  BlockArgument cotangent =
      appendShadow(backward, primal, OperandKind::Cotangent, element, {});
  if (check && !mutation::isMade("read-cotangents:no check of the outputs"))
    PlanOp::getOrCreate(getOperation())
        .require(
            OperandAttr::get(&getContext(), OperandKind::Cotangent, argument),
            check);
  // The gradient of what was loaded before starts from nothing. If nothing was,
  // it is the cotangent, but for what the kernel overwrites.
  bool isOnlyOverwritten =
      use.contributions.empty() && backward.getArgAttr(argument, kWantedAttr);
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
  backward = getBackward(getOperation());
  for (auto &[argument, use] : getAnalysis<Contributions>().in(backward)) {
    ReasonOr<CheckAttr> check = findCheck(argument, use);
    if (!check && !use.upstreams.empty())
      kRemarks.missed(use.upstreams.front(), check.why());
    if (!check)
      continue;
    kRemarks.passed(
        use.upstreams.front(),
        "read from the caller's tensor, where each element is stored "
        "to once");
    if (failed(read(argument, use, *check)))
      return signalPassFailure();
  }
}
