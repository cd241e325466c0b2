//===- Guards.cpp - Accesses under a condition ----------------------------===//
#include "Guards.h"

#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Mutation.h"

using namespace mlir;
using namespace mlir::autodiff;

Value mlir::autodiff::guardMask(OpBuilder &builder, Location loc,
                                Value condition, Value mask, Value pointer) {
  Value lanes = splatTo(builder, loc, condition, pointer.getType());
  return mask ? Value(arith::AndIOp::create(builder, loc, lanes, mask)) : lanes;
}

void mlir::autodiff::completeOther(triton::LoadOp load) {
  OpBuilder builder(load);
  if (!load.getOther())
    load.getOtherMutable().assign(
        zeroOf(builder, load.getLoc(), load.getType()));
}

Value mlir::autodiff::whereLoaded(OpBuilder &builder, Value value,
                                  triton::LoadOp load) {
  Value mask = load.getMask(), other = load.getOther();
  if (!mask || mutation::isMade("batch:lanes that are not stored"))
    return value;
  if (!other)
    other = zeroOf(builder, load.getLoc(), value.getType());
  return arith::SelectOp::create(builder, load.getLoc(), mask, value, other);
}
