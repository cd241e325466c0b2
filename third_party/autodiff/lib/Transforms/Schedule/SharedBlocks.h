//===- SharedBlocks.h - Blocks that several runs add to ---------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SHAREDBLOCKS_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SHAREDBLOCKS_H

#include "SumBlocks.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// A pointer, or a tile of them, `offset` elements behind a scalar one.
Value pointInto(OpBuilder &builder, Location loc, Value base, Value offset);

/// Makes the body of a kernel whose programs look after the blocks of a sum to
/// which several runs add. A program has several groups of neighbouring blocks,
/// far apart from each other: those that many add to may lie together.
class SharedBlocks {
public:
  /// `kernel` has no operations yet, and gets a grid; `tally` has a number for
  /// each block.
  SharedBlocks(triton::FuncOp kernel, Value tally, const SumBlocks &blocks);

  /// Where to put what is done with the elements of these blocks.
  OpBuilder &getBuilder() { return b; }
  /// A tile of pointers to the elements in memory that an argument points to,
  /// and a mask.
  Value point(Value memory);
  Value getMask() const { return mask; }

private:
  Value constant(int64_t number);
  Value range(int64_t size);
  Value spread(Value ofBlocks);
  Value toBlocks(Value groups);
  Value loadTally(Value tally, Value numbers);
  void enterIfShared(Value tallies);
  void findElements(Value numbers, Value tallies);

  const SumBlocks &blocks;
  OpBuilder b;
  Location loc;
  int64_t together; // blocks of a group
  Value lane, mask; // tiles
  Value offset;     // of blocks
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SHAREDBLOCKS_H
