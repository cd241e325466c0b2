//===- Moves.cpp - Operations that only move elements ---------------------===//
#include "autodiff/Analysis/Moves.h"

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "triton/Dialect/Triton/IR/AxisMap.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::onlyMoves(Operation *op) {
  return triton::isMove(op) && !isa<SwapOp>(op);
}

bool mlir::autodiff::rearranges(Operation *op) {
  return onlyMoves(op) || isa<arith::ExtFOp, arith::TruncFOp>(op);
}

bool mlir::autodiff::movesElements(Operation *op) {
  // What a gather takes may be of any lane, live or dead.
  return rearranges(op) || isa<ResidualOp, triton::FpToFpOp>(op) ||
         (triton::takesElements(op) && !isa<triton::GatherOp, SwapOp>(op));
}

std::optional<Repeated> mlir::autodiff::matchRepeated(Value tile) {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  if (!type)
    return std::nullopt;
  if (auto splat = tile.getDefiningOp<triton::SplatOp>())
    return type.getRank() == 1 ? std::optional(Repeated{splat.getSrc(), 0})
                               : std::nullopt;
  auto broadcast = tile.getDefiningOp<triton::BroadcastOp>();
  if (!broadcast)
    return std::nullopt;
  auto expand = broadcast.getSrc().getDefiningOp<triton::ExpandDimsOp>();
  if (!expand)
    return std::nullopt;
  auto source = cast<RankedTensorType>(expand.getSrc().getType());
  for (int64_t axis = 0, from = 0; axis < type.getRank(); ++axis)
    if (axis != static_cast<int64_t>(expand.getAxis()) &&
        source.getDimSize(from++) != type.getDimSize(axis))
      return std::nullopt; // repeated along another axis, too
  return Repeated{expand.getSrc(), expand.getAxis()};
}
