//===- LaneBounds.h - Loads of lanes that outputs depend on -----*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_LANEBOUNDS_H
#define AUTODIFF_ANALYSIS_LANEBOUNDS_H

#include "autodiff/Analysis/Constraints.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

struct Lanes;

/// The constraints that have to be added to a load's mask so that every element
/// that it reads is in `lanes`, the live ones (LiveLanes.h), in some program
/// and iteration. None if that is not known. Adds to `assumed` the numbers that
/// must not be negative for that. `in` is the block that the caller asks for:
/// only launches and iterations in which it runs count.
Constraints findMissingBounds(triton::LoadOp load, const Lanes *lanes,
                              llvm::SmallVectorImpl<ScalarExpr> *assumed,
                              Block *in = nullptr);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_LANEBOUNDS_H
