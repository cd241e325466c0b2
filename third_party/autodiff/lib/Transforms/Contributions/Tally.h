//===- Tally.h - Who adds to a block of a sum alone -------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_TALLY_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_TALLY_H

#include "SumBlocks.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

class ShadowPointers;

/// A gradient to which everything is added atomically, in a wider type.
struct AtomicSum {
  triton::FuncOp kernel;
  unsigned place; // among the kernel's arguments
  unsigned argument;
  SmallVector<triton::AtomicRMWOp> adds; // whose runs are marked
};

/// How many runs (Runs.h) add to each block of a sum: a buffer with these
/// counts, the kernels that fill and use it, and a version of the sum's kernel
/// that uses it. See autodiff-tally-sums.
class Tally {
public:
  /// For launches in which the expression `when` is not zero.
  Tally(const AtomicSum &sum, const SumBlocks &blocks, ExprAttr when);

  /// `additions` adds zeros at the addresses where the sum's kernel adds, and
  /// does nothing else.
  LogicalResult lower(triton::FuncOp additions);

private:
  std::string nameOf(llvm::StringRef role) const;
  BlockArgument appendTally(triton::FuncOp kernel) const;
  BlockArgument appendRounded(triton::FuncOp kernel) const;
  ExprAttr isTallied() const;

  void count(triton::FuncOp additions) const;
  void createShared(llvm::StringRef role) const;
  LogicalResult split() const;
  Value areStored(OpBuilder &b, triton::AtomicRMWOp add, Value tally) const;
  LogicalResult split(triton::AtomicRMWOp add, Value tally,
                      ShadowPointers &rounded) const;

  const AtomicSum &sum;
  SumBlocks blocks;
  ExprAttr when;
  unsigned buffer; // its number
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_TALLY_H
