//===- SumBlocks.h - The memory of a sum in blocks --------------*- C++ -*-===//
//
// A gradient's storage is divided into rows as long as the tensor's pitch, the
// distance of its rows (the last row may be shorter). Each row is cut into
// pieces: these are the blocks. They cover the storage, and do not overlap,
// whatever the pitch is.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SUMBLOCKS_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SUMBLOCKS_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/IR/Builders.h"

namespace mlir::autodiff {

/// The blocks of the gradient of one argument.
class SumBlocks {
public:
  /// Blocks have `length` elements, a power of two, except for the last of a
  /// row.
  SumBlocks(MLIRContext *context, unsigned argument, int64_t length);

  int64_t getLength() const { return length; }
  /// The number of blocks, and of elements in a row.
  ExprAttr count() const;
  ExprAttr pitch() const;

  /// The number of the block that contains the element at `offset`, an i64 or a
  /// tile of them, which counts elements from the tensor's first.
  Value find(OpBuilder &builder, Location loc, Value offset) const;

  /// A block's elements: from `offset + begin` to before `offset + end`.
  /// `begin` and `end` are i32 from 0 to the length of a block.
  struct Elements {
    Value offset, begin, end;
  };
  /// The elements of several blocks, whose numbers are a tile of i64.
  Elements elementsOf(OpBuilder &builder, Location loc, Value blocks) const;

private:
  ExprAttr shift() const;
  ExprAttr lead() const;
  ExprAttr span() const;
  Value size(OpBuilder &builder, Location loc, ExprAttr expression,
             Type type) const;
  Value piecesOfRow(OpBuilder &builder, Location loc, Value pitch) const;

  MLIRContext *context;
  unsigned argument;
  int64_t length;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_SUMBLOCKS_H
