//===- LoopNest.cpp - Loops in one another whose iterations stand alone ---===//
#include "LoopNest.h"

using namespace mlir;
using namespace mlir::autodiff;

Value mlir::autodiff::recompute(Value value, LoopNest &from, OpBuilder &builder,
                                IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  if (from.empty() || from.front().isDefinedOutsideOfLoop(value))
    return value;
  Operation *op = value.getDefiningOp();
  if (!op || (op->getNumRegions() > 0 && !isa<triton::ReduceOp>(op)))
    return {};
  for (Value operand : op->getOperands())
    if (Value copy = recompute(operand, from, builder, map))
      map.map(operand, copy);
    else
      return {};
  builder.clone(*op, map);
  return map.lookup(value);
}
