//===- Axis.cpp - Elements and their neighbours along an axis -------------===//
#include "autodiff/Builders/Axis.h"

#include "autodiff/Builders/Combiner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

/// Finds neighbours by a scan. A run of elements is represented by its last
/// element, the one before that, and whether the run has just one element: (a,
/// p, s)∘(b, q, t) = (b, t ? a : q, false). (`tt.gather` would do as well, but
/// costs as many shuffles as the square of a thread's elements.)
SmallVector<Value> Axis::neighbours(ValueRange tiles, bool reverse) const {
  size_t count = tiles.size();
  SmallVector<Value> runs(tiles);
  llvm::append_range(runs, tiles);
  runs.push_back(integer(1));
  auto join = [&](OpBuilder &, ValueRange left, ValueRange right) {
    Value zero =
        arith::ConstantOp::create(b, loc, b.getIntegerAttr(b.getI32Type(), 0));
    Value isSingle = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                           right.back(), zero);
    SmallVector<Value> results(right.take_front(count));
    for (size_t index = 0; index < count; ++index)
      results.push_back(arith::SelectOp::create(b, loc, isSingle, left[index],
                                                right[count + index]));
    results.push_back(zero);
    return results;
  };
  SmallVector<Value> scanned = scanWith(b, loc, runs, axis, reverse, join);
  return SmallVector<Value>(ArrayRef(scanned).slice(count, count));
}
