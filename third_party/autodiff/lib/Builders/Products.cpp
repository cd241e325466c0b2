//===- Products.cpp - Products over more elements -------------------------===//
#include "autodiff/Builders/Products.h"

#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"

using namespace mlir;
using namespace mlir::autodiff;

/// `tile` with zeros inserted behind each element along `axis`, so that the
/// axis is `factor` times as long.
static Value spread(OpBuilder &b, Location loc, Value tile, unsigned axis,
                    int64_t factor) {
  auto type = cast<RankedTensorType>(tile.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + axis + 1, factor);
  Value copies = repeatAlong(b, loc, tile, axis + 1, type.clone(shape));
  Value number = triton::MakeRangeOp::create(
      b, loc, RankedTensorType::get({factor}, b.getI32Type()), 0, factor);
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number,
                            integerOf(b, loc, number.getType(), 0));
  Value kept = arith::SelectOp::create(
      b, loc, repeatOver(b, loc, isFirst, {axis + 1}, shape), copies,
      zeroOf(b, loc, copies.getType()));
  if (mutation::isMade("fit-products:copies in place of zeros"))
    kept = copies;
  shape = SmallVector<int64_t>(type.getShape());
  shape[axis] *= factor;
  return triton::ReshapeOp::create(b, loc, type.clone(shape), kept);
}

void mlir::autodiff::spreadSum(triton::DotOp dot, int64_t factor) {
  OpBuilder b(dot);
  Location loc = dot.getLoc();
  unsigned rank = cast<RankedTensorType>(dot.getType()).getRank();
  dot.getAMutable().assign(spread(b, loc, dot.getA(), rank - 1, factor));
  dot.getBMutable().assign(spread(b, loc, dot.getB(), rank - 2, factor));
}
