//===- Axis.cpp - Elements and their neighbours along an axis -------------===//
#include "autodiff/Rules/Axis.h"

#include "autodiff/Rules/Tile.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

Value Axis::integer(int64_t value) const {
  auto type = RankedTensorType::get(shape, b.getI32Type());
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, APInt(32, value, true)));
}

Value Axis::position() const {
  Value tile = triton::MakeRangeOp::create(b, loc, 0, shape[axis]);
  for (unsigned other = 0; other < shape.size(); ++other)
    if (other != axis)
      tile = triton::ExpandDimsOp::create(b, loc, tile, other);
  auto type = RankedTensorType::get(shape, b.getI32Type());
  if (tile.getType() == type)
    return tile;
  return triton::BroadcastOp::create(b, loc, type, tile);
}

Value Axis::isAt(int64_t where) const {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, position(),
                               integer(where));
}

Value Axis::shifted(Value tile, int64_t distance) const {
  Value from = arith::AddIOp::create(b, loc, position(), integer(distance));
  from = arith::MaxSIOp::create(b, loc, from, integer(0));
  from = arith::MinSIOp::create(b, loc, from, integer(shape[axis] - 1));
  // Memory has no single bits.
  Type type = tile.getType();
  bool isBits = getElementTypeOrSelf(type).isInteger(1);
  if (isBits)
    tile = arith::ExtUIOp::create(b, loc, withElementType(type, b.getI8Type()),
                                  tile);
  Value moved = triton::GatherOp::create(b, loc, tile, from, axis,
                                         /*efficient_layout=*/false);
  if (isBits)
    moved = arith::TruncIOp::create(b, loc, type, moved);
  return moved;
}
