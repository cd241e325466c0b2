//===- Independence.h - Iterations in any order -----------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_INDEPENDENCE_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_INDEPENDENCE_H

#include "autodiff/Analysis/Reason.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Whether what `op` does many times, in iterations or lanes, may be done in
/// any order, or at once, if no two of these store to the same element
/// (`checkStores`) and `repeated`, the same or what contains it, runs for each:
/// that only loads from arguments that nothing is written to in `op`, and to
/// each other one `op` either stores or adds. What is carried is not looked at.
bool mayRunInAnyOrder(Operation *op, Operation *repeated);
/// Why it may not, if it may not.
Obstacle findDependence(Operation *op, Operation *repeated);

/// The mask of a load, store or atomic operation; null for other operations.
Value getMask(Operation *op);

/// Whether `op` computes the elements of its results one by one.
bool isElementwise(Operation *op);

/// The stores in an operation.
SmallVector<triton::StoreOp> collectStores(Operation *op);

/// The checks that no two programs store to the same element: in a loop, the
/// last one would decide. None if that cannot be checked.
ReasonOr<SmallVector<CheckAttr>> checkStores(ArrayRef<triton::StoreOp> stores);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_INDEPENDENCE_H
