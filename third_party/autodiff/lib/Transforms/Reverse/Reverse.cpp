//===- Reverse.cpp - Derive the backward of a kernel ----------------------===//
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Builders/KernelName.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_REVERSE
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct Reverse : autodiff::impl::ReverseBase<Reverse> {
  using ReverseBase::ReverseBase;

  void transform() override;
};
} // namespace

/// The first number that no tape of `kernel` has.
static unsigned countTapes(triton::FuncOp kernel) {
  unsigned count = 0;
  kernel.walk(
      [&](PushOp push) { count = std::max(count, push.getTape() + 1); });
  return count;
}

/// Whether every value that a backward could not compute again is recorded.
static LogicalResult checkRecords(triton::FuncOp kernel) {
  MemoryFlow memory(kernel);
  WalkResult walk = kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (memory.isRepeatable(op))
      return WalkResult::advance();
    bool isRecorded = llvm::all_of(op->getResults(), [](Value result) {
      return result.use_empty() ||
             llvm::any_of(result.getUsers(), llvm::IsaPred<PushOp>);
    });
    if (isRecorded)
      return WalkResult::skip();
    op->emitError("is not recorded for the backward; run "
                  "autodiff-record-memory first");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// An empty function with the arguments of the user's kernel.
static triton::FuncOp createBackward(triton::FuncOp primal,
                                     const Activity &activity) {
  OpBuilder builder(primal);
  builder.setInsertionPointAfter(primal);
  auto backward = cast<triton::FuncOp>(primal->cloneWithoutRegions());
  builder.insert(backward);
  backward->setAttr(kRoleAttr, builder.getStringAttr("backward"));
  Block *body = builder.createBlock(&backward.getBody());
  for (BlockArgument argument : primal.getArguments()) {
    body->addArgument(argument.getType(), argument.getLoc());
    backward.setArgAttr(argument.getArgNumber(), kOperandAttr,
                        OperandAttr::get(builder.getContext(),
                                         OperandKind::Argument,
                                         argument.getArgNumber()));
    if (activity.isWanted(argument.getArgNumber()))
      backward.setArgAttr(argument.getArgNumber(), kWantedAttr,
                          builder.getUnitAttr());
    if (activity.hasCotangent(argument.getArgNumber()))
      backward.setArgAttr(argument.getArgNumber(), kHasCotangentAttr,
                          builder.getUnitAttr());
  }
  return backward;
}

void Reverse::transform() {
  triton::FuncOp primal = getDifferentiated(getOperation());
  if (failed(checkRecords(primal)))
    return signalPassFailure();
  Activity activity(primal, findWanted(primal, allWanted, wanted),
                    findWithCotangents(primal, allCotangents, cotangents));
  if (failed(activity.check()))
    return signalPassFailure();

  triton::FuncOp backward = createBackward(primal, activity);
  nameKernel(backward, getPrimal(getOperation()).getSymName() + "_bwd");
  OpBuilder builder(&getContext());
  builder.setInsertionPointToEnd(&backward.getBody().front());
  LiveLanes lanes(primal, activity, repeated);
  SmallVector<ScalarExpr> assumed;
  Adjoint adjoint(builder, activity, lanes, primal.getLoc(), countTapes(primal),
                  assume ? &assumed : nullptr);
  adjoint.primals.map(primal.getArguments(), backward.getArguments());
  Block &body = primal.getBody().front();
  adjoint.recompute(body);
  if (failed(adjoint.reverse(body)))
    return signalPassFailure();
  triton::ReturnOp::create(builder, primal.getLoc(), ValueRange());
  assumeNotNegative(getOperation(), assumed);
  // The copy is removed once its accesses are lowered.
  if (primal != getPrimal(getOperation()))
    primal.setPrivate();
  again && !mutation::isMade("markers:dropped at the first derivative")
      ? keepMarkers(getOperation())
      : dropMarkers(getOperation());
}
