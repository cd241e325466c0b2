//===- Independence.h - Iterations in any order -----------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_INDEPENDENCE_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_INDEPENDENCE_H

#include "autodiff/Analysis/Reason.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Whether the iterations or lanes of `op` may run in any order, or at once.
/// `repeated` is what runs for each of them: `op` or an operation that contains
/// it. It is assumed that no two of them store to the same element
/// (`checkStores`). Then it is enough that `repeated` only loads from arguments
/// that `op` does not write to, and that `op` either only stores or only adds
/// to each other argument. Carried values are not looked at.
bool mayRunInAnyOrder(Operation *op, Operation *repeated);
/// Why they may not; none if they may.
Obstacle findDependence(Operation *op, Operation *repeated);

/// Whether each element of a result of `op` only depends on one of each
/// operand.
bool isElementwise(Operation *op);

/// The stores in an operation.
SmallVector<triton::StoreOp> collectStores(Operation *op);

/// The checks that no two programs store to the same element. (In a loop, the
/// last iteration would win.) Fails if that cannot be checked.
ReasonOr<SmallVector<CheckAttr>> checkStores(ArrayRef<triton::StoreOp> stores);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_INDEPENDENCE_H
