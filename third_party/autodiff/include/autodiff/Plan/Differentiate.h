//===- Differentiate.h - From a kernel to a plan ----------------*- C++ -*-===//
#ifndef AUTODIFF_PLAN_DIFFERENTIATE_H
#define AUTODIFF_PLAN_DIFFERENTIATE_H

#include "autodiff/Plan/Plan.h"

namespace mlir {
class OpPassManager;

namespace autodiff {

/// Adds the passes that turn a kernel into its derived kernels: all, or as far
/// as the `last`, by its name; fails if there is none of that name.
LogicalResult buildDifferentiatePipeline(OpPassManager &pm,
                                         const Request &request,
                                         llvm::StringRef last = "");

/// Makes these passes, and each part of them, named pipelines of textual ones.
void registerPipelines();

/// The same for functions that kernels call.
void registerFunctionPipeline();

/// Differentiates the kernel of `module`; the request and the resulting plan
/// are JSON. Errors are emitted as diagnostics with the user's locations.
FailureOr<std::string> differentiate(ModuleOp module,
                                     llvm::StringRef requestJson);

} // namespace autodiff
} // namespace mlir

#endif // AUTODIFF_PLAN_DIFFERENTIATE_H
