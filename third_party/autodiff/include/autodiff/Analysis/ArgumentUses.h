//===- ArgumentUses.h - What a backward does with gradients -----*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_ARGUMENTUSES_H
#define AUTODIFF_ANALYSIS_ARGUMENTUSES_H

#include "autodiff/Analysis/Contributions.h"

namespace mlir::autodiff {

/// What a backward does with the gradient of one primal argument.
struct ArgumentUse {
  SmallVector<UpstreamOp> upstreams;
  SmallVector<AccumulateOp> accumulates;
};

/// By argument, in order.
std::map<unsigned, ArgumentUse> collectUses(triton::FuncOp backward);

/// The same of the arguments whose gradient is this kernel's alone, among the
/// backward kernels of its module. What others add to it later (a remainder)
/// changes nothing for this one.
std::map<unsigned, ArgumentUse> collectOwnUses(triton::FuncOp backward);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_ARGUMENTUSES_H
