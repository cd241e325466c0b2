//===- Guards.cpp - Accesses under a condition ----------------------------===//
#include "Guards.h"

#include "autodiff/Rules/Tile.h"

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
