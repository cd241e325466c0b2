//===- SumBlocks.h - The memory of a sum in blocks --------------*- C++ -*-===//
//
// A gradient's storage, seen as rows as long as the tensor's pitch (the last
// row may be shorter), each of which is cut into pieces; these are the blocks.
// They cover the storage, and no two overlap, whatever the pitch is.
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
  /// Pieces have `length` elements, a power of two, except for the last of a
  /// row.
  SumBlocks(MLIRContext *context, unsigned argument, int64_t length);

  int64_t getLength() const { return length; }
  /// How many there are, and elements in a row.
  ExprAttr count() const;
  ExprAttr pitch() const;

  /// The number of the block with the element at `offset`, an i64 or a tile of
  /// them that counts elements from the tensor's first.
  Value find(OpBuilder &builder, Location loc, Value offset) const;

  /// A block's elements: those that lie `begin` to `end` (exclusive; i32, from
  /// 0 to the length of a piece) behind `offset`.
  struct Elements {
    Value offset, begin, end;
  };
  /// The elements of blocks, a tile of i64.
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
