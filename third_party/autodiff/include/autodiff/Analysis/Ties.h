//===- Ties.h - Comparisons that hold exactly by construction ---*- C++ -*-===//
//
// `x == max(x)` holds somewhere because both sides have the same bits. A
// kernel that takes the maximum from another one but computes x again may find
// no such element, and a gradient vanishes: compilers contract products with
// sums in one kernel and not in the other, and sum tiles in the order of their
// layouts. So in every derived kernel this holds:
//
//   A value that a decision compares with what it was chosen from is taken from
//   another kernel only if that comes from there as well, or has the same bits
//   wherever it is computed.
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
/// same memory: no sum in an order of its own, and no sum of a product that may
/// or may not be contracted with it.
bool isReproducible(Value value);
/// The same; `known` keeps what was found.
bool isReproducible(Value value, llvm::DenseMap<Value, bool> &known);

/// The values in `root` that would meet, in a decision, something that they
/// were chosen from and that is not reproducible.
llvm::DenseSet<Value> findTies(Operation *root);

/// Whether a sum of a tile's elements went into `value`: its order is that of
/// a layout. Of what `tt.dot` gives, there is one copy, which all layouts get.
bool dependsOnOrder(Value value);

/// The reductions in `root` that what comes to such a decision is computed
/// from, and of whose results threads may have copies with other bits.
llvm::SetVector<triton::ReduceOp> findTiedSums(Operation *root);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_TIES_H
