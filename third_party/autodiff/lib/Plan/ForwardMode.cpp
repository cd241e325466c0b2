//===- ForwardMode.cpp - From a kernel to one with tangents ---------------===//
//
// The derived kernel is again one of Triton's: it runs in place of the user's,
// and is differentiated as if a user had written it. So higher derivatives, and
// reverse mode over forward mode, need no passes of their own.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Plan/Differentiate.h"

#include "autodiff/Analysis/Costs.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Forward/Passes.h"
#include "autodiff/Source/Passes.h"
#include "autodiff/Target/Passes.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct ForwardOptions : PassPipelineOptions<ForwardOptions> {
  ListOption<unsigned> tangents{
      *this, "tangents", llvm::cl::desc("Arguments that have tangents.")};
};
} // namespace

void mlir::autodiff::buildForwardPipeline(OpPassManager &pm,
                                          const Request &request) {
  ArrayRef<unsigned> tangents = *request.tangents;
  pm.addPass(createNormalize());
  pm.addNestedPass<triton::FuncOp>(createMarkMiscomputed());
  LinkRulesOptions link;
  link.forward = true;
  pm.addPass(createLinkRules(link));
  LiftAssemblyOptions lift;
  lift.allWanted = false;
  lift.wanted.assign(tangents.begin(), tangents.end());
  pm.addPass(createLiftAssembly(lift));
  pm.addPass(createCleanup());
  if (request.settle)
    pm.addPass(createSettleAtomics());
  pm.addNestedPass<triton::FuncOp>(createStopMaxima());
  PushTangentsOptions push;
  push.allWanted = false;
  push.wanted.assign(tangents.begin(), tangents.end());
  push.unread.assign(request.unread.begin(), request.unread.end());
  push.taken.assign(request.taken.begin(), request.taken.end());
  push.later = request.later;
  pm.addPass(createPushTangents(push));
  // What a tangent is multiplied by has derivatives where the tangent is zero.
  pm.addNestedPass<triton::FuncOp>(createNarrowZeros());
  ReuseOutputsOptions reuse;
  reuse.left.assign(request.left.begin(), request.left.end());
  if (!request.left.empty())
    pm.addNestedPass<triton::FuncOp>(createReuseOutputs(reuse));
  pm.addPass(createWriteMarkers({/*calls=*/true}));
  pm.addNestedPass<triton::FuncOp>(createDropCarries());
  pm.addNestedPass<triton::FuncOp>(createExtendLate());
  if (request.last)
    pm.addNestedPass<triton::FuncOp>(createReduceTogether());
  pm.addPass(createCleanup());
  if (request.ample) {
    pm.addNestedPass<triton::FuncOp>(createMergeFactors());
    pm.addNestedPass<triton::FuncOp>(createSplitSums());
  }
  pm.addNestedPass<triton::FuncOp>(createFitProducts());
  pm.addNestedPass<triton::FuncOp>(createLowerSwaps());
  pm.addNestedPass<triton::FuncOp>(createLegalizeSource());
  pm.addPass(createDropRules());
  pm.addPass(createCleanup());
  pm.addPass(createVerifyTarget());
}

void mlir::autodiff::registerForwardPipeline() {
  PassPipelineRegistration<ForwardOptions>(
      "autodiff-push-forward",
      "Derive the kernel that computes tangents beside its values",
      [](OpPassManager &pm, const ForwardOptions &options) {
        Request request;
        request.tangents = llvm::to_vector_of<unsigned>(options.tangents);
        buildForwardPipeline(pm, request);
      });
}

/// Whether a product is computed of another one; to be added to it is not that.
static bool chainsProducts(triton::FuncOp kernel) {
  return kernel
      .walk([](triton::DotOp dot) {
        BackwardSliceOptions options;
        options.inclusive = true;
        options.omitBlockArguments = true;
        options.filter = [&](Operation *op) {
          return op->getBlock() == dot->getBlock();
        };
        SetVector<Operation *> slice;
        for (Value operand : {dot.getA(), dot.getB()})
          (void)getBackwardSlice(operand, &slice, options);
        return llvm::any_of(slice, llvm::IsaPred<triton::DotOp>)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

std::string mlir::autodiff::printForward(ModuleOp module) {
  llvm::json::Array tangents, left;
  triton::FuncOp kernel, withRules;
  for (auto function : module.getOps<triton::FuncOp>()) {
    if (getRole(function) == "tangent")
      kernel = function;
    if (getRole(function) == "rules")
      withRules = function;
  }
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (auto of = kernel.getArgAttrOfType<IntegerAttr>(i, kTangentAttr))
      tangents.push_back(of.getInt());
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (kernel.getArgAttr(i, kLeftAttr))
      left.push_back(i);
  llvm::json::Object answer{{"name", kernel.getSymName()},
                            {"ttir", printKernel(kernel)},
                            {"tangents", std::move(tangents)}};
  // Twice the tiles leave room for fewer stages. Where products are operands of
  // products, they also need the registers of half a processor, whose shared
  // memory is no more than half.
  ProductCosts costs = ProductCosts::of(kernel);
  int stages =
      std::min(costs.getStages(), chainsProducts(kernel) ? 2 : INT_MAX);
  if (costs.work > 0)
    answer["options"] = llvm::json::Object{{"most_stages", stages}};
  if (auto settled = kernel->getAttrOfType<DenseI32ArrayAttr>(kLaterAttr))
    answer["later"] = llvm::json::Array(settled.asArrayRef());
  if (!left.empty())
    answer["left"] = std::move(left);
  if (withRules) {
    StringAttr name = kernel.getSymNameAttr();
    kernel.erase();
    withRules.setSymNameAttr(name);
    answer["differentiated"] = printKernel(withRules);
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(answer));
  return text;
}
