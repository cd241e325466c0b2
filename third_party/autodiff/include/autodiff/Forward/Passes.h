//===- Passes.h - Tangents beside values ------------------------*- C++ -*-===//
#ifndef AUTODIFF_FORWARD_PASSES_H
#define AUTODIFF_FORWARD_PASSES_H

#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {

#define GEN_PASS_DECL
#include "autodiff/Forward/Passes.h.inc"

/// Attribute of arguments of a kernel that also computes tangents: the number
/// of the argument whose tangents this one points to.
constexpr llvm::StringLiteral kTangentAttr = "autodiff.tangent";

} // namespace mlir::autodiff

#endif // AUTODIFF_FORWARD_PASSES_H
