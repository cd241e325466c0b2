//===- VerifyTarget.cpp - Kernels that a device takes ---------------------===//
//
// Triton compiles kernels beyond a device's limits wrongly, or fails later.
// That a kernel is beyond them is a bug in one of our passes.
//
//===----------------------------------------------------------------------===//
#include "BroadcastProduct.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Support/CheckTiles.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Target/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_VERIFYTARGET
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static InFlightDiagnostic report(Operation *op, const Target &target) {
  return op->emitError("internal error: a derived kernel is beyond the limits "
                       "of ")
         << target.name << ": ";
}

static LogicalResult verify(triton::DotOp dot, const Target &target) {
  if (!target.isTooShort(dot))
    return success();
  auto lhs = cast<RankedTensorType>(dot.getA().getType());
  return report(dot, target)
         << "a product of " << lhs.getElementType() << " sums over "
         << lhs.getShape().back() << " elements, and should over "
         << target.getLeastSum(dot) << " at least";
}

static LogicalResult verify(triton::ReduceOp sum, const Target &target) {
  if (!BroadcastProduct::match(sum))
    return success();
  return report(sum, target) << "Triton takes this sum for a product";
}

/// Checks the options that a kernel is compiled with; `least_warps` counts
/// warps of 32 threads.
static LogicalResult verifyOptions(triton::FuncOp kernel,
                                   const Target &target) {
  LaunchOp launch = findLaunch(kernel);
  DictionaryAttr options = launch ? launch.getOptionsAttr() : DictionaryAttr();
  for (auto [name, warpSize] : {std::pair("num_warps", target.warpSize),
                                std::pair("least_warps", int64_t(32))}) {
    auto warps = options ? options.getAs<IntegerAttr>(name) : IntegerAttr();
    if (warps && (!llvm::isPowerOf2_64(warps.getInt()) ||
                  warps.getInt() > target.mostThreads / warpSize))
      return report(kernel, target)
             << warps.getInt() << " warps, and at most "
             << target.mostThreads / warpSize << " are allowed";
  }
  return success();
}

static LogicalResult verify(triton::FuncOp kernel, const Target &target) {
  if (failed(checkTiles(kernel)) || failed(verifyOptions(kernel, target)))
    return failure();
  WalkResult walked = kernel.walk([&](Operation *op) -> WalkResult {
    if (auto dot = dyn_cast<triton::DotOp>(op))
      return verify(dot, target);
    if (auto sum = dyn_cast<triton::ReduceOp>(op))
      return verify(sum, target);
    return success();
  });
  return failure(walked.wasInterrupted());
}

namespace {
struct VerifyTarget : autodiff::impl::VerifyTargetBase<VerifyTarget> {
  using VerifyTargetBase::VerifyTargetBase;

  void runOnOperation() override {
    const Target *device =
        target.empty() ? &Target::of(getOperation()) : Target::find(target);
    if (!device) {
      getOperation().emitError("unknown target '") << target << "'";
      return signalPassFailure();
    }
    if (sharedMemory > device->sharedMemory) {
      report(getOperation(), *device)
          << sharedMemory.getValue() << " bytes of shared memory, and at most "
          << device->sharedMemory << " are allowed";
      return signalPassFailure();
    }
    auto functions = getOperation().getOps<triton::FuncOp>();
    bool anyDerived = llvm::any_of(functions, [](triton::FuncOp function) {
      return function->hasAttr(kRoleAttr);
    });
    for (triton::FuncOp function : functions)
      if (function->hasAttr(kRoleAttr) == anyDerived &&
          failed(verify(function, *device)))
        return signalPassFailure();
  }
};
} // namespace
