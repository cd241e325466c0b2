//===- Decisions.h - What a kernel decides by computed floats ---*- C++ -*-===//
//
// A *decision* is an integer or a condition that is computed from floats: the
// index that an arg-max finds among sums, the code of a quantized number,
// whether a sum is above a threshold. Floats that are computed again may differ
// in the last bit. Gradients tolerate that, but a decision may come out
// differently, and then another address is read, or another branch taken, than
// in the forward. So this holds in every derived kernel:
//
//   An integer, a mask of an access, or a branch is the one of the forward: the
//   floats that decided are reproducible (Ties.h), or the forward saves it.
//
// Conditions that select between floats are computed again. One in some ten
// million comes out differently, mostly where both sides are equal (relu,
// clamp, softplus) or neither matters (a guard against division by zero).
// Saving them would be expensive: attention has some for each score.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_DECISIONS_H
#define AUTODIFF_ANALYSIS_DECISIONS_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {

/// The decisions of `kernel` that a backward must not compute again, since they
/// may come out differently in another kernel.
llvm::SetVector<Value> findDecisions(triton::FuncOp kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_DECISIONS_H
