//===- SelectingAtomics.h - Maxima, minima and exchanges --------*- C++ -*-===//
//
// Such an atomic operation leaves either its operand or the old content in
// memory. Whose value it is in the end is known when all programs have run: it
// is the one that memory holds, bit for bit. Of equal ones it is any.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_RULES_SELECTINGATOMICS_H
#define AUTODIFF_RULES_SELECTINGATOMICS_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Whether `op` is such an operation, and its operand a float of the memory's
/// type: then it has a derivative.
bool selectsFloats(triton::AtomicRMWOp op);

/// An error if another access through `base` may change what `select` leaves
/// there, in another way than these operations do. Additions may go to other
/// elements.
LogicalResult checkSelects(triton::AtomicRMWOp select, BlockArgument base);

/// The lanes under `mask` (which may be null) whose `value` is in memory.
Value createIsFinal(OpBuilder &b, Location loc, Value pointer, Value value,
                    Value mask);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_SELECTINGATOMICS_H
