//===- Apart.h - Accesses that never touch one element ----------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_APART_H
#define AUTODIFF_ANALYSIS_APART_H

#include "mlir/IR/Operation.h"

namespace mlir::autodiff {

/// Whether two accesses to one argument touch no element both, in any lanes,
/// iterations and programs of a launch: because only one of them runs in a
/// launch, or by their addresses. The user promises it of addresses that are
/// loaded, unless both have the same one.
bool areApart(Operation *a, Operation *b);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_APART_H
