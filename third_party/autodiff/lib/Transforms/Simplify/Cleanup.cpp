//===- Cleanup.cpp - What cleans up after passes --------------------------===//
#include "autodiff/Transforms/Cleanup.h"

#include "autodiff/Support/State.h"
#include "autodiff/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_CLEANUP
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

void mlir::autodiff::addCleanup(OpPassManager &kernel) {
  kernel.addPass(createSimplify());
  kernel.addPass(createCanonicalizerPass());
  kernel.addPass(createCSEPass());
}

namespace {
/// Hashes of kernels for which a cleanup had nothing to do. They stay valid
/// whatever passes do. Most passes change nothing in most kernels, so cleanups
/// can be skipped.
struct CleanKernels {
  explicit CleanKernels(Operation *) {}

  static bool isInvalidated(const AnalysisManager::PreservedAnalyses &) {
    return false;
  }

  llvm::DenseMap<Operation *, llvm::hash_code> states;
};

struct Cleanup : autodiff::impl::CleanupBase<Cleanup> {
  Cleanup() : pipeline(triton::FuncOp::getOperationName()) {
    addCleanup(pipeline);
  }

  void runOnOperation() override;

  OpPassManager pipeline;
};
} // namespace

void Cleanup::runOnOperation() {
  auto &clean = getAnalysis<CleanKernels>();
  for (auto kernel : getOperation().getOps<triton::FuncOp>()) {
    llvm::hash_code found = hashState(kernel);
    auto known = clean.states.find(kernel);
    if (known != clean.states.end() && known->second == found)
      continue;
    if (failed(runPipeline(pipeline, kernel)))
      return signalPassFailure();
    if (hashState(kernel) == found)
      clean.states.insert_or_assign(kernel, found);
  }
}
