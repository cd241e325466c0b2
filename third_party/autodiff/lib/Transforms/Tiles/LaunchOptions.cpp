//===- LaunchOptions.cpp - Warps and stages that tiles need ---------------===//
#include "Reverse/Costs.h"
#include "autodiff/Analysis/Registers.h"
#include "autodiff/Analysis/SharedMemory.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LAUNCHOPTIONS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct LaunchOptions : autodiff::impl::LaunchOptionsBase<LaunchOptions> {
  void runOnOperation() override {
    triton::FuncOp kernel = getOperation();
    if (!isBackward(kernel))
      return;
    ProductCosts costs = ProductCosts::of(kernel);
    if (costs.work > 0) {
      // No other program runs beside one that takes more than half of a
      // processor's shared memory: all registers are its own.
      bool isAlone = countSharedMemory(kernel) > kSharedMemory / 2;
      return set({{"num_stages", costs.getStages()},
                  {"num_warps", isAlone ? 8 : costs.getWarps().value_or(8)}});
    }
    int warps = warpsFor(countRegisters(kernel));
    // Few programs with a loop each do not do what the forward's do.
    if (kernel->hasAttr(kGridAttr) && !kernel.getOps<scf::ForOp>().empty())
      return set({{"num_warps", warps}});
    if (warps > 1)
      set({{"least_warps", warps}});
  }

  void set(ArrayRef<std::pair<llvm::StringRef, int>> options) {
    Builder b(&getContext());
    SmallVector<NamedAttribute> list;
    for (auto [name, value] : options)
      list.push_back(b.getNamedAttr(name, b.getI32IntegerAttr(value)));
    getOperation()->setAttr(kOptionsAttr, b.getDictionaryAttr(list));
  }
};
} // namespace
