//===- State.h - Whether a kernel is what it was ----------------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_STATE_H
#define AUTODIFF_SUPPORT_STATE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/Hashing.h"

namespace mlir::autodiff {

/// A hash of the operations of a kernel and their operands, to see whether a
/// kernel has changed. (MLIR's fingerprints and hashes of operations take
/// nearly as long as the cleanup that is to be avoided.)
llvm::hash_code hashState(Operation *kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_STATE_H
