//===- SharedBlocks.h - Blocks that several runs add to ---------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SHAREDBLOCKS_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SHAREDBLOCKS_H

#include "SumBlocks.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// A pointer, or a tile of pointers, `offset` elements behind the scalar
/// `base`.
Value pointInto(OpBuilder &builder, Location loc, Value base, Value offset);

/// Makes the body of a kernel whose programs visit the blocks of a sum
/// (SumBlocks.h) that several runs add to. A program has several groups of
/// neighbouring blocks, which are far apart from each other, since blocks with
/// many additions may be together.
class SharedBlocks {
public:
  /// `kernel` has no operations yet, and gets a grid. `tally` has a count for
  /// each block.
  SharedBlocks(triton::FuncOp kernel, Value tally, const SumBlocks &blocks);

  /// A builder where operations on the elements of these blocks go.
  OpBuilder &getBuilder() { return b; }
  /// Pointers to these elements in the memory of an argument, and a mask.
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
