//===- State.h - Whether a kernel is what it was ----------------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_STATE_H
#define AUTODIFF_SUPPORT_STATE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/Hashing.h"

namespace mlir::autodiff {

/// Which operations there are in a kernel, where, and of what. (MLIR's
/// fingerprints and hashes of operations take nearly as long as cleaning.)
llvm::hash_code hashState(Operation *kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_STATE_H
