//===- FunctionPipeline.cpp - The passes from a function to its gradient --===//
//
// A function that kernels call is differentiated like a kernel, but without
// memory: the forward saves nothing, and loops run again where a kernel would
// have tapes.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Plan/Differentiate.h"

#include "autodiff/Source/Passes.h"
#include "autodiff/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct FunctionOptions : PassPipelineOptions<FunctionOptions> {
  ListOption<unsigned> wanted{
      *this, "wanted",
      llvm::cl::desc("Arguments whose gradient is asked for.")};
  Option<std::string> name{
      *this, "name", llvm::cl::desc("What the derived function is called.")};
  Option<bool> values{*this, "values",
                      llvm::cl::desc("Return what the function did, too.")};
  Option<bool> ones{*this, "ones",
                    llvm::cl::desc("Let all cotangents be one.")};
};
} // namespace

template <typename Options>
static Options withWanted(const FunctionOptions &asked, Options options) {
  options.wanted.assign(asked.wanted.begin(), asked.wanted.end());
  return options;
}

template <typename Options>
static Options withOnlyWanted(const FunctionOptions &asked, Options options) {
  options.allWanted = false;
  return withWanted(asked, options);
}

static void buildFunctionPipeline(OpPassManager &pm,
                                  const FunctionOptions &asked) {
  pm.addPass(createWrapFunction(withWanted(asked, WrapFunctionOptions())));
  pm.addPass(createNormalize());
  LinkRulesOptions link;
  link.again = true;
  pm.addPass(createLinkRules(link));
  pm.addNestedPass<triton::FuncOp>(createMarkResiduals());
  pm.addPass(createLiftAssembly(withOnlyWanted(asked, LiftAssemblyOptions())));
  pm.addPass(createRescaleAccumulators());
  pm.addPass(createCarrySums());
  pm.addPass(createDropReferences());
  pm.addPass(createDropMaxima());
  pm.addPass(createCleanup());
  pm.addPass(createRoundLate());
  ReverseOptions reverse = withOnlyWanted(asked, ReverseOptions());
  reverse.assume = false;
  reverse.again = true;
  pm.addPass(createReverse(reverse));
  pm.addNestedPass<triton::FuncOp>(createNarrowZeros());
  pm.addPass(createCleanup());
  pm.addPass(createReplay());
  pm.addPass(createCleanup());
  UnwrapBackwardOptions unwrap = withWanted(asked, UnwrapBackwardOptions());
  unwrap.name = asked.name;
  unwrap.ones = asked.ones;
  unwrap.withValues = asked.values;
  pm.addPass(createUnwrapBackward(unwrap));
  pm.addPass(createCleanup());
  pm.addNestedPass<triton::FuncOp>(createLowerSwaps());
  pm.addNestedPass<triton::FuncOp>(createLegalizeSource());
  pm.addNestedPass<triton::FuncOp>(createLoopInvariantCodeMotionPass());
  pm.addPass(createCleanup());
}

void mlir::autodiff::registerFunctionPipeline() {
  PassPipelineRegistration<FunctionOptions>(
      "autodiff-differentiate-function",
      "Derive the gradient of a function that kernels call, as a function",
      buildFunctionPipeline);
}
