//===- Reverse.cpp - Derive the backward of a kernel ----------------------===//
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Pointers.h"
#include "autodiff/Rules/Adjoint.h"
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

  void runOnOperation() override;
  ArgumentSet select(triton::FuncOp kernel, ArrayRef<unsigned> asked);
};
} // namespace

/// The arguments asked for, or all float pointers if none was named.
ArgumentSet Reverse::select(triton::FuncOp kernel, ArrayRef<unsigned> asked) {
  ArgumentSet arguments;
  for (unsigned index : asked)
    arguments.insert(index);
  if (asked.empty())
    for (BlockArgument argument : kernel.getArguments())
      if (isPointer(argument.getType()) &&
          isDifferentiable(getPointee(argument.getType())))
        arguments.insert(argument.getArgNumber());
  return arguments;
}

/// An empty function with the primal's arguments.
static triton::FuncOp createBackward(triton::FuncOp primal) {
  OpBuilder builder(primal);
  builder.setInsertionPointAfter(primal);
  auto backward = cast<triton::FuncOp>(primal->cloneWithoutRegions());
  builder.insert(backward);
  backward.setSymName((primal.getSymName() + "_bwd").str());
  backward->setAttr(kRoleAttr, builder.getStringAttr("backward"));
  Block *body = builder.createBlock(&backward.getBody());
  for (BlockArgument argument : primal.getArguments()) {
    body->addArgument(argument.getType(), argument.getLoc());
    backward.setArgAttr(argument.getArgNumber(), kOperandAttr,
                        OperandAttr::get(builder.getContext(),
                                         OperandKind::Argument,
                                         argument.getArgNumber()));
  }
  return backward;
}

void Reverse::runOnOperation() {
  triton::FuncOp primal = getPrimal(getOperation());
  if (!primal || !primal.getBody().hasOneBlock()) {
    getOperation().emitError("expected a kernel of one block; run "
                             "autodiff-normalize first");
    return signalPassFailure();
  }
  Activity activity(primal, select(primal, wanted), select(primal, cotangents));
  if (activity.failed())
    return signalPassFailure();

  triton::FuncOp backward = createBackward(primal);
  OpBuilder builder(&getContext());
  builder.setInsertionPointToEnd(&backward.getBody().front());
  Adjoint adjoint(builder, activity);
  adjoint.primals.map(primal.getArguments(), backward.getArguments());
  Block &body = primal.getBody().front();
  adjoint.recompute(body);
  if (failed(adjoint.reverse(body)))
    return signalPassFailure();
  triton::ReturnOp::create(builder, primal.getLoc(), ValueRange());
}
