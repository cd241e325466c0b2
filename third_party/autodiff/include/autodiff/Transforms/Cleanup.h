//===- Cleanup.h - What cleans up after a pass ------------------*- C++ -*-===//
#ifndef AUTODIFF_TRANSFORMS_CLEANUP_H
#define AUTODIFF_TRANSFORMS_CLEANUP_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::autodiff {

/// Adds the passes that remove what one of ours has left behind in a kernel.
void addCleanup(OpPassManager &kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_TRANSFORMS_CLEANUP_H
