//===- SumBlocks.cpp - The memory of a sum in blocks ----------------------===//
#include "SumBlocks.h"

#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Expr.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::autodiff;

SumBlocks::SumBlocks(MLIRContext *context, unsigned argument, int64_t length)
    : context(context), argument(argument), length(length) {
  assert(llvm::isPowerOf2_64(length) && "tiles have such lengths");
}

ExprAttr SumBlocks::pitch() const {
  return ExprAttr::get(ExprKind::Pitch, ExprAttr::get(context, length),
                       argument);
}
ExprAttr SumBlocks::lead() const {
  return ExprAttr::get(context, ExprKind::Lead, argument);
}
ExprAttr SumBlocks::span() const {
  return ExprAttr::get(context, ExprKind::Span, argument);
}

/// How far the start of the first row is in front of the tensor's first
/// element, which is the first one of some row.
ExprAttr SumBlocks::shift() const {
  return mulOf(pitch(), ceilDivOf(lead(), pitch()));
}

ExprAttr SumBlocks::count() const {
  ExprAttr covered = addOf(span(), subOf(shift(), lead()));
  return mulOf(ceilDivOf(covered, pitch()), ceilDivOf(pitch(), length));
}

Value SumBlocks::size(OpBuilder &b, Location loc, ExprAttr expression,
                      Type type) const {
  return splatTo(b, loc, SizeOp::create(b, loc, expression), type);
}

Value SumBlocks::piecesOfRow(OpBuilder &b, Location loc, Value pitch) const {
  Type type = pitch.getType();
  Value up =
      arith::AddIOp::create(b, loc, pitch, integerOf(b, loc, type, length - 1));
  return arith::ShRUIOp::create(b, loc, up,
                                integerOf(b, loc, type, llvm::Log2_64(length)));
}

Value SumBlocks::find(OpBuilder &b, Location loc, Value offset) const {
  Type type = offset.getType();
  Value rowLength = size(b, loc, pitch(), type);
  Value place =
      arith::AddIOp::create(b, loc, offset, size(b, loc, shift(), type));
  Value row = arith::DivUIOp::create(b, loc, place, rowLength);
  Value inRow = arith::SubIOp::create(
      b, loc, place, arith::MulIOp::create(b, loc, row, rowLength));
  Value piece = arith::ShRUIOp::create(
      b, loc, inRow, integerOf(b, loc, type, llvm::Log2_64(length)));
  Value before =
      arith::MulIOp::create(b, loc, row, piecesOfRow(b, loc, rowLength));
  return arith::AddIOp::create(b, loc, before, piece);
}

SumBlocks::Elements SumBlocks::elementsOf(OpBuilder &b, Location loc,
                                          Value blocks) const {
  Type type = blocks.getType();
  auto sub = [&](Value x, Value y) {
    return arith::SubIOp::create(b, loc, x, y).getResult();
  };
  auto confine = [&](Value x) {
    Value low = arith::MaxSIOp::create(b, loc, x, integerOf(b, loc, type, 0));
    Value high =
        arith::MinSIOp::create(b, loc, low, integerOf(b, loc, type, length));
    return castInteger(b, loc, high, b.getI32Type());
  };
  Value rowLength = size(b, loc, pitch(), type);
  Value pieces = piecesOfRow(b, loc, rowLength);
  Value row = arith::DivUIOp::create(b, loc, blocks, pieces);
  Value piece = sub(blocks, arith::MulIOp::create(b, loc, row, pieces));
  Value inRow =
      arith::MulIOp::create(b, loc, piece, integerOf(b, loc, type, length));
  Value place = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, row, rowLength), inRow);
  Value first = size(b, loc, subOf(shift(), lead()), type);
  Value total = size(b, loc, span(), type);
  // The end of the row, and of the storage.
  Value end = arith::MinSIOp::create(
      b, loc, sub(rowLength, inRow),
      sub(arith::AddIOp::create(b, loc, first, total), place));
  return {sub(place, size(b, loc, shift(), type)), confine(sub(first, place)),
          confine(end)};
}
