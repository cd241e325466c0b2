//===- Ties.h - Comparisons that hold exactly by construction ---*- C++ -*-===//
//
// `x == max(x)` is true somewhere because both sides have the same bits. If a
// kernel loads a maximum that another one stored, but computes x again, no
// element may be equal, and the gradient vanishes: compilers fuse multiply-adds
// in one kernel and not in the other, and sum tiles in the order of their
// layouts. So this holds in every derived kernel:
//
//   If a decision (Decisions.h) compares a value with what it was chosen from,
//   it is taken from another kernel only if that is taken from there as well,
//   or has the same bits wherever it is computed.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_TIES_H
#define AUTODIFF_ANALYSIS_TIES_H

#include "mlir/IR/Value.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {

/// Whether `value` has the same bits in every kernel that computes it from the
/// same memory: no sum whose order is open, and no product plus sum that may or
/// may not be fused.
bool isReproducible(Value value);
/// The same with a cache of results, `known`.
bool isReproducible(Value value, llvm::DenseMap<Value, bool> &known);

/// The values in `root` that a decision compares with what they were chosen
/// from, where that is not reproducible.
llvm::DenseSet<Value> findTies(Operation *root);

/// The values in `root` that say which elements are tied, or that are summed
/// over these: another kernel may take one of them (autodiff-place-maxima)
/// where this one takes all.
llvm::DenseSet<Value> findTieCounts(Operation *root,
                                    const llvm::DenseSet<Value> &ties);

/// Whether a sum over a tile went into `value`: its order depends on the
/// layout. (`tt.dot` does not count: its result has one copy, which all layouts
/// get.)
bool dependsOnOrder(Value value);

/// The reductions in `root` that such a decision depends on, and whose result
/// may have different bits in different threads.
llvm::SetVector<triton::ReduceOp> findTiedSums(Operation *root);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_TIES_H
