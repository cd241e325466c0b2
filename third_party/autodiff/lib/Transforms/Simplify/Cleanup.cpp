//===- Cleanup.cpp - What cleans up after a pass --------------------------===//
#include "autodiff/Transforms/Cleanup.h"

#include "autodiff/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::autodiff;

void mlir::autodiff::addCleanup(OpPassManager &kernel) {
  kernel.addPass(createSimplify());
  kernel.addPass(createCanonicalizerPass());
  kernel.addPass(createCSEPass());
}
