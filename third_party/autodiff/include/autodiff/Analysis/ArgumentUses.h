//===- ArgumentUses.h - What a backward does with gradients -----*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_ARGUMENTUSES_H
#define AUTODIFF_ANALYSIS_ARGUMENTUSES_H

#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include <map>

namespace mlir::autodiff {

/// What a backward does with the gradient of one argument of the forward.
struct ArgumentUse {
  SmallVector<UpstreamOp> upstreams;
  SmallVector<AccumulateOp> accumulates;
};

/// The uses of all arguments, by number.
std::map<unsigned, ArgumentUse> collectUses(triton::FuncOp backward);

/// The same of arguments whose gradient only this one of the module's backward
/// kernels computes. A kernel that adds a remainder later does not count.
std::map<unsigned, ArgumentUse> collectOwnUses(triton::FuncOp backward);

/// The backward kernels with the forward's grid: what is known of addresses in
/// the forward holds in these.
SmallVector<triton::FuncOp> getUnscheduled(ModuleOp module);

/// The forward's loads, stores and atomics by number (`autodiff.site`).
llvm::DenseMap<unsigned, Operation *> collectSites(triton::FuncOp primal);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_ARGUMENTUSES_H
