//===- DeepStack.cpp - A stack for long kernels ---------------------------===//

#include "DeepStack.h"

#include <pthread.h>

using namespace mlir::autodiff;

/// Up to this size, the caller's stack is deep enough.
static constexpr size_t kShortText = size_t(64) << 10;
static constexpr size_t kLeastStack = size_t(64) << 20;
/// An operation has at least 25 characters of text, and needs up to 700 bytes
/// of stack.
static constexpr size_t kStackPerCharacter = 128;

bool mlir::autodiff::runOnDeepStack(size_t textSize,
                                    llvm::function_ref<void()> body) {
  if (textSize <= kShortText) {
    body();
    return true;
  }
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes))
    return false;
  auto run = [](void *body) -> void * {
    (*static_cast<llvm::function_ref<void()> *>(body))();
    return nullptr;
  };
  pthread_t thread;
  // Memory is allocated as the stack grows.
  bool isRunning =
      !pthread_attr_setstacksize(&attributes,
                                 kLeastStack + kStackPerCharacter * textSize) &&
      !pthread_create(&thread, &attributes, run, &body);
  pthread_attr_destroy(&attributes);
  return isRunning && !pthread_join(thread, nullptr);
}
