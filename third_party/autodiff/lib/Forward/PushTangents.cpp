//===- PushTangents.cpp - Derive the forward mode of a kernel -------------===//
#include "autodiff/Forward/Passes.h"

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Rules/Tangents.h"
#include "autodiff/Transforms/Needs.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_PUSHTANGENTS
#include "autodiff/Forward/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct PushTangents : autodiff::impl::PushTangentsBase<PushTangents> {
  using PushTangentsBase::PushTangentsBase;

  void runOnOperation() override;
};
} // namespace

void PushTangents::runOnOperation() {
  if (failed(checkNeeds(getArgument(), getOperation(),
                        {Need::Kernel, Need::OneBlock})))
    return signalPassFailure();
  triton::FuncOp primal = getDifferentiated(getOperation());
  std::string name = (getPrimal(getOperation()).getSymName() + "_jvp").str();
  if (getOperation().lookupSymbol(name)) {
    primal.emitError("has its tangents already, in '") << name << "'";
    return signalPassFailure();
  }
  Activity activity(primal, findWanted(primal, allWanted, wanted),
                    findWithCotangents(primal, allOutputs, outputs));
  if (failed(activity.check()))
    return signalPassFailure();

  triton::FuncOp kernel = derive(primal, "tangent");
  kernel.setSymName(name);
  Block &body = kernel.getBody().front();
  body.clear();
  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  Tangents tangents(builder, activity, primal.getLoc());
  tangents.primals.map(primal.getArguments(), kernel.getArguments());
  for (BlockArgument argument : primal.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (!activity.hasShadow(number))
      continue;
    auto attributes = builder.getDictionaryAttr(
        builder.getNamedAttr(kTangentAttr, builder.getI32IntegerAttr(number)));
    unsigned last = kernel.getNumArguments();
    (void)kernel.insertArgument(last, argument.getType(), attributes,
                                argument.getLoc());
    tangents.set(argument, kernel.getArgument(last));
  }
  if (failed(tangents.push(primal.getBody().front())))
    return signalPassFailure();
  triton::ReturnOp::create(builder, primal.getLoc(), ValueRange());
  dropMarkers(kernel);
}
