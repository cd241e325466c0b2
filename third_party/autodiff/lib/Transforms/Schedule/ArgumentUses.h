//===- ArgumentUses.h - What a backward does with gradients -----*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_ARGUMENTUSES_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_ARGUMENTUSES_H

#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include <map>

namespace mlir::autodiff {

/// What a backward does with the gradient of one primal argument.
struct ArgumentUse {
  SmallVector<UpstreamOp> upstreams;
  SmallVector<AccumulateOp> accumulates;
};

/// By argument, in order.
std::map<unsigned, ArgumentUse> collectUses(triton::FuncOp backward);

/// The primal's loads, stores and atomics by site.
llvm::DenseMap<unsigned, Operation *> collectSites(triton::FuncOp primal);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_ARGUMENTUSES_H
