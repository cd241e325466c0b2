//===- LaneBounds.h - Loads of lanes that outputs depend on -----*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_LANEBOUNDS_H
#define AUTODIFF_ANALYSIS_LANEBOUNDS_H

#include "autodiff/Analysis/Constraints.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

struct Lanes;

/// What a load's mask has to say besides what it says, so that every element
/// that is read is in `lanes`, the live ones, in some program and iteration of
/// the launch; none if that is not known. Adds numbers that must not be
/// negative for that to `assumed`, if there may be any. Who asks in a block
/// `in` asks of launches and iterations in which it runs.
Constraints findMissingBounds(triton::LoadOp load, const Lanes *lanes,
                              llvm::SmallVectorImpl<ScalarExpr> *assumed,
                              Block *in = nullptr);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_LANEBOUNDS_H
