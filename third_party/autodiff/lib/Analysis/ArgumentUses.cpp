//===- ArgumentUses.cpp - What a backward does with gradients -------------===//
#include "autodiff/Analysis/ArgumentUses.h"
#include "autodiff/Analysis/Kernels.h"

using namespace mlir;
using namespace mlir::autodiff;

std::map<unsigned, ArgumentUse>
mlir::autodiff::collectUses(triton::FuncOp backward) {
  std::map<unsigned, ArgumentUse> uses;
  backward.walk([&](Operation *op) {
    if (auto upstream = dyn_cast<UpstreamOp>(op))
      uses[upstream.getArgument()].upstreams.push_back(upstream);
    else if (auto accumulate = dyn_cast<AccumulateOp>(op))
      uses[accumulate.getArgument()].accumulates.push_back(accumulate);
  });
  return uses;
}

static bool isRemainder(const ArgumentUse &use) {
  return use.upstreams.empty() &&
         llvm::all_of(use.accumulates,
                      [](AccumulateOp op) { return op.getRemainder(); });
}

std::map<unsigned, ArgumentUse>
mlir::autodiff::collectOwnUses(triton::FuncOp backward) {
  std::map<unsigned, ArgumentUse> own;
  for (auto &[argument, use] : collectUses(backward))
    if (!isRemainder(use))
      own.try_emplace(argument, use);
  for (triton::FuncOp other :
       getBackwards(backward->getParentOfType<ModuleOp>()))
    if (other != backward)
      for (auto &[argument, use] : collectUses(other))
        if (!isRemainder(use))
          own.erase(argument);
  return own;
}
