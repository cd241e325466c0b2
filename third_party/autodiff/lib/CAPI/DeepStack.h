//===- DeepStack.h - A stack for long kernels -------------------*- C++ -*-===//
//
// Walks from values to their operands are recursive, and so are LLVM's: the
// recursion is at most as deep as a kernel is long. A caller's stack suffices
// for a chain of some thousand operations.
//
//===----------------------------------------------------------------------===//

#ifndef AUTODIFF_LIB_CAPI_DEEPSTACK_H
#define AUTODIFF_LIB_CAPI_DEEPSTACK_H

#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::autodiff {

/// The longest module for which there is a deep enough stack, in characters.
constexpr size_t kLongestText = size_t(32) << 20;

/// Runs `body` on a stack that is deep enough for a module with that many
/// characters: for a long one, in another thread. False if there is no memory
/// for that.
bool runOnDeepStack(size_t textSize, llvm::function_ref<void()> body);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_CAPI_DEEPSTACK_H
