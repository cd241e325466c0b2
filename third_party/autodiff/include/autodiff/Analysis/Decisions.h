//===- Decisions.h - What a kernel decides by computed floats ---*- C++ -*-===//
//
// A *decision* is an integer or a condition that is made of floats: the index
// that an arg-max finds among sums, whether a sum is above a threshold. Floats
// that are computed again may differ in the last bit, for which gradients do
// not care; but where that turns a decision which *leads* to an address, a mask
// or a branch, the backward goes elsewhere than the forward went. So in every
// derived kernel this holds:
//
//   A decision that leads there is the one that the forward took: floats that
//   it is made of are reproducible (Ties.h), or the forward saves it.
//
// A condition that only selects between floats does not lead there. Mostly both
// are equal where it turns (relu, clamp, abs), and then so is what is left of
// the gradient. An index does: `where(lane == argmax(s), x, y)`.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_DECISIONS_H
#define AUTODIFF_ANALYSIS_DECISIONS_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {

/// The decisions of `kernel` that lead to an address, a mask or a branch, and
/// that need not come out alike in another kernel.
llvm::SetVector<Value> findDecisions(triton::FuncOp kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_DECISIONS_H
