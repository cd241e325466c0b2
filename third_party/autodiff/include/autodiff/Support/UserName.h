//===- UserName.h - What the user wrote for an operation --------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_USERNAME_H
#define AUTODIFF_SUPPORT_USERNAME_H

#include "mlir/IR/Operation.h"
#include <string>

namespace mlir::autodiff {

/// What a message calls `op`, in quotes: the function of Triton that it comes
/// from, as in 'tl.atomic_max', or else the operation.
std::string spellForUser(Operation *op);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_USERNAME_H
