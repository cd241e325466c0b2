//===- ArgumentUses.cpp - What a backward does with gradients -------------===//
#include "ArgumentUses.h"

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

llvm::DenseMap<unsigned, Operation *>
mlir::autodiff::collectSites(triton::FuncOp primal) {
  llvm::DenseMap<unsigned, Operation *> sites;
  primal.walk([&](Operation *op) {
    if (auto site = op->getAttrOfType<IntegerAttr>(kSiteAttr))
      sites[site.getInt()] = op;
  });
  return sites;
}
