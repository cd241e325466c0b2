//===- Reduction.h - Reductions by one operation ----------------*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_REDUCTION_H
#define AUTODIFF_BUILDERS_REDUCTION_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Whether the result is the same for elements in another order. It is not if
/// there are several operands, whose elements belong together.
inline bool isOfAnyOrder(triton::ReduceOp reduction) {
  Operation *combiner = reduction.getSingleCombiner();
  return combiner && combiner->hasTrait<OpTrait::IsCommutative>();
}

/// Reduces a tile along one axis by `OpT`; the result lacks the axis, and is a
/// scalar for rank 1.
template <typename OpT>
Value reduceOver(OpBuilder &builder, Location loc, Value tile, unsigned axis) {
  auto reduce = triton::ReduceOp::create(builder, loc, ValueRange{tile}, axis);
  Type element = getElementTypeOrSelf(tile.getType());
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&reduce.getCombineOp(), {},
                                    {element, element}, {loc, loc});
  Value combined =
      OpT::create(builder, loc, body->getArgument(0), body->getArgument(1));
  triton::ReduceReturnOp::create(builder, loc, ValueRange{combined});
  return reduce.getResult()[0];
}

/// Reduces `tile` along `axis` with the combine function of `reduction`.
inline Value reduceAs(OpBuilder &builder, triton::ReduceOp reduction,
                      Value tile, unsigned axis) {
  auto copy = triton::ReduceOp::create(builder, reduction.getLoc(),
                                       ValueRange{tile}, axis);
  IRMapping map;
  reduction.getCombineOp().cloneInto(&copy.getCombineOp(), map);
  return copy.getResult()[0];
}

/// Reduces all elements of a tile to a scalar.
template <typename OpT>
Value reduceAll(OpBuilder &builder, Location loc, Value tile) {
  while (auto type = dyn_cast<RankedTensorType>(tile.getType()))
    tile = reduceOver<OpT>(builder, loc, tile, type.getRank() - 1);
  return tile;
}

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_REDUCTION_H
