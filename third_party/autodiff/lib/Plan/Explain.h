//===- Explain.h - What kernels load, keep and read again -------*- C++ -*-===//
#ifndef AUTODIFF_LIB_PLAN_EXPLAIN_H
#define AUTODIFF_LIB_PLAN_EXPLAIN_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/Support/JSON.h"

namespace mlir::autodiff {

/// The facts of a plan, for people: how each gradient's argument is addressed,
/// what buffers hold, what the backward loads, and which arguments have no
/// gradient. The reasons are in remarks. docs/plan.md describes the format.
/// `forward` may be null.
llvm::json::Object explain(triton::FuncOp primal, triton::FuncOp forward,
                           ArrayRef<triton::FuncOp> backwards);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_PLAN_EXPLAIN_H
