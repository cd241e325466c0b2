//===- Differentiate.h - From a kernel to a plan ----------------*- C++ -*-===//
#ifndef AUTODIFF_PLAN_DIFFERENTIATE_H
#define AUTODIFF_PLAN_DIFFERENTIATE_H

#include "autodiff/Plan/Plan.h"

namespace mlir {
class OpPassManager;

namespace autodiff {

/// Adds the passes that make derived kernels of a kernel: all, or those up to
/// the pass named `last`; fails if there is no such pass.
LogicalResult buildDifferentiatePipeline(OpPassManager &pm,
                                         const Request &request,
                                         llvm::StringRef last = "");

/// Registers these passes, and each stage of them, as named pipelines.
void registerPipelines();

/// The same for functions that kernels call.
void registerFunctionPipeline();

/// Adds the passes that make, of a kernel, one that also computes tangents of
/// what it stores, from those of the arguments that the request names.
void buildForwardPipeline(OpPassManager &pm, const Request &request);

/// Registers these passes as a named pipeline.
void registerForwardPipeline();

/// The kernel with tangents as JSON: its text, and the arguments that its last
/// arguments are tangents of.
std::string printForward(ModuleOp module);

/// Differentiates the kernel of `module`; the request and the resulting plan
/// are JSON; so is a kernel with tangents, if the request asks for that. Errors
/// are emitted as diagnostics with the user's locations.
FailureOr<std::string> differentiate(ModuleOp module,
                                     llvm::StringRef requestJson);

} // namespace autodiff
} // namespace mlir

#endif // AUTODIFF_PLAN_DIFFERENTIATE_H
