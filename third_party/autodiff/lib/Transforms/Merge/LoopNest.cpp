//===- LoopNest.cpp - Loops in one another whose iterations stand alone ---===//
#include "LoopNest.h"

#include "autodiff/Builders/Slice.h"
#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

Value mlir::autodiff::recompute(Value value, LoopNest &from, OpBuilder &builder,
                                IRMapping &map) {
  return recompute(builder, value, map, [&](Value each) {
    if (from.empty() || from.front().isDefinedOutsideOfLoop(each))
      return Elsewhere::Known;
    Operation *op = each.getDefiningOp();
    return op && (op->getNumRegions() == 0 || isa<triton::ReduceOp>(op))
               ? Elsewhere::Computed
               : Elsewhere::Never;
  });
}
