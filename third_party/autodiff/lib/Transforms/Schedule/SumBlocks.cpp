//===- SumBlocks.cpp - The memory of a sum in blocks ----------------------===//
#include "SumBlocks.h"

#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Tile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::autodiff;
using llvm::json::Array;
using Json = llvm::json::Value;

SumBlocks::SumBlocks(unsigned argument, int64_t length)
    : argument(argument), length(length) {
  assert(llvm::isPowerOf2_64(length) && "tiles have such lengths");
}

Json SumBlocks::pitch() const { return Array{"pitch", argument, length}; }

/// How far the first row starts before the tensor's first element, which is the
/// first one of a row.
Json SumBlocks::shift() const {
  return Array{"mul", pitch(),
               Array{"ceildiv", Array{"lead", argument}, pitch()}};
}

Json SumBlocks::count() const {
  Array covered{"add", Array{"span", argument},
                Array{"sub", shift(), Array{"lead", argument}}};
  return Array{"mul", Array{"ceildiv", std::move(covered), pitch()},
               Array{"ceildiv", pitch(), length}};
}

Value SumBlocks::size(OpBuilder &b, Location loc, Json expression,
                      Type type) const {
  return splatTo(
      b, loc,
      SizeOp::create(b, loc,
                     toAttribute(b.getContext(), std::move(expression))),
      type);
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
  Value first =
      size(b, loc, Array{"sub", shift(), Array{"lead", argument}}, type);
  Value total = size(b, loc, Array{"span", argument}, type);
  // Of the row, and of the storage.
  Value end = arith::MinSIOp::create(
      b, loc, sub(rowLength, inRow),
      sub(arith::AddIOp::create(b, loc, first, total), place));
  return {sub(place, size(b, loc, shift(), type)), confine(sub(first, place)),
          confine(end)};
}
