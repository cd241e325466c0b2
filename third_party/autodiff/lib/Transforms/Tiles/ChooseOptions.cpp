//===- ChooseOptions.cpp - Warps and stages that tiles need --------------===//
#include "autodiff/Analysis/Costs.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Registers.h"
#include "autodiff/Analysis/SharedMemory.h"
#include "autodiff/Builders/DerivedKernels.h"
#include "autodiff/Support/Target.h"
#include "autodiff/Transforms/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_CHOOSEOPTIONS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// How many warps the products of a kernel have rows for, or need for
/// registers; none without products. Further warps would multiply the same rows
/// again.
static std::optional<int64_t> countWarpsOfProducts(triton::FuncOp kernel,
                                                   const Target &target) {
  std::optional<int64_t> most;
  kernel.walk([&](triton::DotOp dot) {
    auto tile = cast<RankedTensorType>(dot.getType());
    int64_t rows = tile.getDimSize(tile.getRank() - 2);
    most = std::max(most.value_or(target.getWarpsOfAllRegisters()),
                    rows / Target::kRowsOfWarp);
  });
  return most;
}

/// How many warps the longest tile of a kernel should have, in a range of
/// Triton's usual numbers. With too few, the registers of one tile leave no
/// room for others.
static int64_t countWarpsOfTiles(triton::FuncOp kernel, const Target &target) {
  int64_t longest = 1;
  kernel.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto tile = dyn_cast<RankedTensorType>(type))
        longest = std::max(longest, tile.getNumElements());
  });
  int64_t warps = llvm::PowerOf2Ceil(llvm::divideCeil(
      longest, Target::kElementsOfTilePerThread * target.warpSize));
  return std::min(warps, Target::kUsualWarps);
}

namespace {
struct ChooseOptions : autodiff::impl::ChooseOptionsBase<ChooseOptions> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<triton::FuncOp>())
      if (isBackward(kernel))
        choose(kernel);
  }

  void choose(triton::FuncOp kernel) {
    const Target &target = Target::of(kernel);
    ProductCosts costs = ProductCosts::of(kernel);
    if (costs.work > 0) {
      // A program that needs more than half of a processor's shared memory has
      // the processor to itself, with all registers.
      double memory = target.getSharedMemoryOfProducts();
      bool isAlone = countSharedMemory(kernel) > memory / 2;
      int64_t all = target.getWarpsOfAllRegisters();
      return set(kernel, {{"num_stages", costs.getStages()},
                          {"num_warps",
                           isAlone ? all : costs.getWarps().value_or(all)}});
    }
    int64_t warps = warpsFor(target, countRegisters(kernel));
    std::optional<int64_t> ofProducts = countWarpsOfProducts(kernel, target);
    warps = std::min(warps, ofProducts.value_or(warps));
    // A kernel with a few programs that loop does something else than the
    // forward.
    if (!getGrid(kernel).empty() && !kernel.getOps<scf::ForOp>().empty())
      return set(kernel, {{"num_warps", warps}});
    if (!ofProducts)
      warps = std::max(warps, countWarpsOfTiles(kernel, target));
    if (warps > 1)
      set(kernel, {{"least_warps", warps * target.warpSize / 32}});
  }

  void set(triton::FuncOp kernel,
           ArrayRef<std::pair<llvm::StringRef, int64_t>> options) {
    Builder b(&getContext());
    SmallVector<NamedAttribute> list;
    for (auto [name, value] : options)
      list.push_back(b.getNamedAttr(name, b.getI32IntegerAttr(value)));
    launchOf(kernel).setOptionsAttr(b.getDictionaryAttr(list));
  }
};
} // namespace
