//===- Normalize.cpp - The form that differentiation works on -------------===//
#include "NormalizeLoops.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/CFGToSCF.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_NORMALIZE
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// How MLIR's control flow lifting returns from a Triton function.
struct LiftReturns : ControlFlowToSCFTransformation {
  FailureOr<Operation *> createUnreachableTerminator(Location loc,
                                                     OpBuilder &builder,
                                                     Region &region) override {
    return triton::ReturnOp::create(builder, loc, ValueRange()).getOperation();
  }
};

struct Normalize : autodiff::impl::NormalizeBase<Normalize> {
  void runOnOperation() override;
  LogicalResult structure(triton::FuncOp kernel);
  void define(triton::FuncOp kernel);
  void number(triton::FuncOp kernel);
};
} // namespace

/// What Triton makes of a kernel, and nothing else that a function could be.
static LogicalResult checkSignature(triton::FuncOp kernel) {
  if (kernel.getNumResults())
    return kernel.emitError("a kernel returns nothing: store the results");
  for (BlockArgument argument : kernel.getArguments()) {
    Type type = argument.getType();
    Type element =
        isa<RankedTensorType>(type) ? getElementTypeOrSelf(type) : type;
    auto pointer = dyn_cast<triton::PointerType>(type);
    if (!element.isSignlessInteger() && !isa<FloatType>(element) &&
        !isa<triton::TensorDescType>(type) &&
        !(pointer && !isa<RankedTensorType>(pointer.getPointeeType())))
      return kernel.emitError("argument ")
             << argument.getArgNumber()
             << " of a kernel should be a number, a pointer to numbers or a "
                "tensor descriptor, got "
             << type;
  }
  return success();
}

/// Early returns become branches of one block.
LogicalResult Normalize::structure(triton::FuncOp kernel) {
  if (kernel.getBody().hasOneBlock())
    return success();
  LiftReturns interface;
  DominanceInfo dominance(kernel);
  if (failed(transformCFGToSCF(kernel.getBody(), interface, dominance)))
    return failure();
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitError("control flow of this kernel cannot be turned "
                            "into loops and branches");
  return success();
}

/// Makes defined what Triton leaves open, so that the forward and what the
/// backward recomputes agree, and masked lanes cannot poison a sum.
void Normalize::define(triton::FuncOp kernel) {
  kernel.walk([&](Operation *op) {
    // Elements must stay where they are for an adjoint to find them.
    if (auto reshape = dyn_cast<triton::ReshapeOp>(op))
      reshape->removeAttr("allow_reorder");
    auto load = dyn_cast<triton::LoadOp>(op);
    if (!load || !load.getMask() || load.getOther() ||
        isa<triton::PointerType>(getElementTypeOrSelf(load.getType())))
      return;
    OpBuilder builder(load);
    Value zero = arith::ConstantOp::create(
        builder, load.getLoc(),
        cast<TypedAttr>(builder.getZeroAttr(load.getType())));
    load.getOtherMutable().assign(zero);
  });
}

void Normalize::number(triton::FuncOp kernel) {
  Builder builder(&getContext());
  int site = 0;
  kernel.walk([&](Operation *op) {
    if (isa<triton::LoadOp, triton::StoreOp, triton::AtomicRMWOp>(op))
      op->setAttr(kSiteAttr, builder.getI32IntegerAttr(site++));
  });
}

void Normalize::runOnOperation() {
  // Gradients have the primal's addressing, and are written.
  triton::makePointersGlobal(getOperation());

  OpPassManager pipeline(ModuleOp::getOperationName());
  pipeline.addPass(createInlinerPass());
  pipeline.addPass(createSymbolDCEPass());
  if (failed(runPipeline(pipeline, getOperation())))
    return signalPassFailure();

  triton::FuncOp kernel = getPrimal(getOperation());
  if (!kernel) {
    getOperation().emitError("no public function to differentiate");
    return signalPassFailure();
  }
  if (failed(checkSignature(kernel)))
    return signalPassFailure();
  for (auto function : getOperation().getOps<triton::FuncOp>())
    if (!function.isDeclaration() && failed(structure(function)))
      return signalPassFailure();
  if (failed(normalizeLoops(kernel)))
    return signalPassFailure();
  OpPassManager lowering(ModuleOp::getOperationName());
  lowering.addPass(createLowerDescriptors());
  if (failed(runPipeline(lowering, getOperation())))
    return signalPassFailure();
  define(kernel);

  OpPassManager cleanup(ModuleOp::getOperationName());
  OpPassManager &perKernel = cleanup.nest<triton::FuncOp>();
  perKernel.addPass(createCanonicalizerPass());
  perKernel.addPass(createSplitPointers());
  perKernel.addPass(createLoopInvariantCodeMotionPass());
  perKernel.addPass(createCSEPass());
  if (failed(runPipeline(cleanup, getOperation())))
    return signalPassFailure();
  number(kernel);
}
