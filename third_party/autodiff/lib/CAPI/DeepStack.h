//===- DeepStack.h - A stack for long kernels -------------------*- C++ -*-===//
//
// Walks from values to what they are computed from call themselves, and so do
// LLVM's: a kernel is at most as deep as it is long. The stack of a caller is
// good for some thousand operations in a row.
//
//===----------------------------------------------------------------------===//

#ifndef AUTODIFF_LIB_CAPI_DEEPSTACK_H
#define AUTODIFF_LIB_CAPI_DEEPSTACK_H

#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::autodiff {

/// Characters of a module for which there is a stack that is deep enough.
constexpr size_t kLongestText = size_t(32) << 20;

/// Runs `body` where the stack is deep enough for a module with that many
/// characters: in another thread if it is long. False if there is no memory
/// for that.
bool runOnDeepStack(size_t textSize, llvm::function_ref<void()> body);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_CAPI_DEEPSTACK_H
