//===- Writes.h - Why writes stay inside of memory --------------*- C++ -*-===//
//
// What a derived kernel writes lies inside of what was allocated for it. For
// each of its stores and atomics, one of four things says so.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_WRITES_H
#define AUTODIFF_ANALYSIS_WRITES_H

#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

enum class Inside {
  Nothing, ///< says so: a bug in a pass
  Proof,   ///< the memory has a place for each, or the user's kernel writes it
  Mask,    ///< the access is masked
  Check,   ///< a launch checks that these are the tensor's elements
  Room,    ///< a launch knows how far they reach, and allocates as much
};

llvm::StringRef stringifyInside(Inside inside);

struct Write {
  Operation *op;
  unsigned operand; ///< of the kernel; more than it has if nobody knows
  Inside inside;
};

/// What a kernel of the plan may write, and why that stays inside; an operation
/// whose pointer may come from several operands is there once for each.
SmallVector<Write> findWrites(triton::FuncOp kernel, PlanOp plan);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_WRITES_H
