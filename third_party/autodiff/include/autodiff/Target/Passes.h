//===- Passes.h - What a device and Triton's passes take --------*- C++ -*-===//
#ifndef AUTODIFF_TARGET_PASSES_H
#define AUTODIFF_TARGET_PASSES_H

#include "autodiff/Transforms/Passes.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"

namespace mlir::autodiff {

#define GEN_PASS_DECL
#include "autodiff/Target/Passes.h.inc"

/// Attribute of products of the user's kernel that Triton computes wrongly.
constexpr llvm::StringLiteral kMiscomputedAttr = "autodiff.miscomputed";

} // namespace mlir::autodiff

#endif // AUTODIFF_TARGET_PASSES_H
