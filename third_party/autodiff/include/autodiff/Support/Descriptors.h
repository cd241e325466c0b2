//===- Descriptors.h - Descriptors among a kernel's arguments ---*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_DESCRIPTORS_H
#define AUTODIFF_SUPPORT_DESCRIPTORS_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::autodiff {

/// The value that a component of a descriptor is known to have in a launch, an
/// integer. On the descriptor itself: whether it pads with NaN.
constexpr llvm::StringLiteral kKnownAttr = "autodiff.known";
/// On components of descriptors that are equal in a launch: the argument number
/// of one of them.
constexpr llvm::StringLiteral kSameAttr = "autodiff.same";

/// Whether the arguments behind a descriptor have the types of its shape (i32)
/// and its strides (i64), as Triton's frontend passes them.
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
