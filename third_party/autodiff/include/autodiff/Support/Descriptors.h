//===- Descriptors.h - Descriptors among a kernel's arguments ---*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_DESCRIPTORS_H
#define AUTODIFF_SUPPORT_DESCRIPTORS_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::autodiff {

/// Whether the types of the arguments behind a descriptor begin with those of
/// its shape (i32) and its strides (i64), as Triton's frontend has them.
inline bool isFollowedByParts(triton::TensorDescType type,
                              ArrayRef<Type> behind) {
  size_t rank = type.getBlockType().getRank();
  return behind.size() >= 2 * rank &&
         llvm::all_of(behind.take_front(rank),
                      [](Type part) { return part.isInteger(32); }) &&
         llvm::all_of(behind.slice(rank, rank),
                      [](Type part) { return part.isInteger(64); });
}

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_DESCRIPTORS_H
