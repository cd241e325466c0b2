//===- Normalize.cpp - The form that differentiation works on -------------===//
#include "NormalizeLoops.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/Reduction.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Structure.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_NORMALIZE
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct Normalize : autodiff::impl::NormalizeBase<Normalize> {
  void transform() override;
  LogicalResult structure(triton::FuncOp kernel);
  void define(triton::FuncOp kernel);
  void findRemainders(triton::FuncOp kernel);
  void number(triton::FuncOp kernel);
};
} // namespace

/// Checks that a function is what Triton makes of a kernel. A wrapped function
/// may also take tiles of pointers.
static LogicalResult checkSignature(triton::FuncOp kernel) {
  bool isWrapped = kernel->hasAttr(kFunctionAttr);
  for (BlockArgument argument : kernel.getArguments()) {
    Type type = argument.getType();
    Type element =
        isa<RankedTensorType>(type) ? getElementTypeOrSelf(type) : type;
    auto pointer = dyn_cast<triton::PointerType>(isWrapped ? element : type);
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

/// Turns early returns into branches, so that the body is one block.
LogicalResult Normalize::structure(triton::FuncOp kernel) {
  WalkResult maps = kernel.walk([](triton::MapElementwiseOp map) {
    return WalkResult(structureRegion(map.getScalarOp()));
  });
  if (maps.wasInterrupted())
    return failure();
  return structureRegion(kernel.getBody());
}

/// Whether the kernel's results depend on the order of elements. A reduction of
/// all elements does not.
static bool dependsOnOrder(Value tile) {
  return llvm::any_of(tile.getUsers(), [](Operation *user) {
    auto reduce = dyn_cast<triton::ReduceOp>(user);
    return !reduce || !isOfAnyOrder(reduce) ||
           cast<RankedTensorType>(reduce.getSrcs()[0].getType()).getRank() != 1;
  });
}

/// Concatenates two halves in order, where Triton leaves the order open.
static void concatenate(triton::CatOp cat) {
  OpBuilder b(cat);
  Location loc = cat.getLoc();
  Value pairs = triton::JoinOp::create(b, loc, cat.getLhs(), cat.getRhs());
  SmallVector<int32_t> order;
  for (int32_t axis = 0;
       axis < cast<RankedTensorType>(pairs.getType()).getRank(); ++axis)
    order.push_back(axis);
  std::rotate(order.begin(), order.end() - 1, order.end());
  Value halves = triton::TransOp::create(b, loc, pairs, ArrayRef(order));
  cat.getResult().replaceAllUsesWith(
      triton::ReshapeOp::create(b, loc, cat.getType(), halves));
  cat.erase();
}

/// Defines what Triton leaves undefined, so that the forward and the backward's
/// recomputation agree, and masked lanes cannot become NaN in a sum.
void Normalize::define(triton::FuncOp kernel) {
  kernel.walk([&](Operation *op) {
    // The order has to be fixed, so that an adjoint finds the elements.
    auto cat = dyn_cast<triton::CatOp>(op);
    auto reshape = dyn_cast<triton::ReshapeOp>(op);
    bool isFree = cat || (reshape && reshape.getAllowReorder());
    if (isFree && dependsOnOrder(op->getResult(0)))
      kernel->setAttr(kOrderedAttr, UnitAttr::get(&getContext()));
    if (reshape)
      reshape->removeAttr("allow_reorder");
    if (cat)
      return concatenate(cat);
    auto load = dyn_cast<triton::LoadOp>(op);
    if (!load || !load.getMask() || load.getOther() ||
        isa<triton::PointerType>(getElementTypeOrSelf(load.getType())))
      return;
    OpBuilder builder(load);
    load.getOtherMutable().assign(
        zeroOf(builder, load.getLoc(), load.getType()));
  });
}

/// a − a / b · b is the remainder.
void Normalize::findRemainders(triton::FuncOp kernel) {
  kernel.walk([](arith::SubIOp op) {
    auto product = op.getRhs().getDefiningOp<arith::MulIOp>();
    if (!product)
      return;
    for (auto [value, divisor] :
         {std::pair(product.getLhs(), product.getRhs()),
          std::pair(product.getRhs(), product.getLhs())}) {
      auto quotient = value.getDefiningOp<arith::DivSIOp>();
      if (!quotient || quotient.getLhs() != op.getLhs() ||
          quotient.getRhs() != divisor)
        continue;
      OpBuilder builder(op);
      op.replaceAllUsesWith(
          arith::RemSIOp::create(builder, op.getLoc(), op.getLhs(), divisor)
              .getResult());
      return;
    }
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

void Normalize::transform() {
  // Gradients have the addressing of arguments, but are written to.
  triton::makePointersGlobal(getOperation());

  OpPassManager pipeline(ModuleOp::getOperationName());
  pipeline.addPass(createInlinerPass());
  pipeline.addPass(createSymbolDCEPass());
  if (failed(runPipeline(pipeline, getOperation())))
    return signalPassFailure();

  triton::FuncOp kernel = getPrimal(getOperation());
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
  perKernel.addPass(createDecomposeScaledDots());
  perKernel.addPass(createCanonicalizerPass());
  perKernel.addPass(createRaiseSwaps());
  perKernel.addPass(createRaiseBits());
  perKernel.addPass(createSplitPointers());
  perKernel.addPass(createLoopInvariantCodeMotionPass());
  perKernel.addPass(createCSEPass());
  if (failed(runPipeline(cleanup, getOperation())))
    return signalPassFailure();
  findRemainders(kernel);
  number(kernel);
}
