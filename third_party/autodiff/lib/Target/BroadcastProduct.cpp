//===- BroadcastProduct.cpp - Sums that Triton takes for products ---------===//
#include "BroadcastProduct.h"

#include "autodiff/Builders/Combiner.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Triton does not turn shorter rows and columns into products.
constexpr int64_t kShortest = 16;

/// The value a, if `tile` broadcasts a along a new axis.
static Value matchFactor(Value tile, unsigned axis) {
  auto broadcast = tile.getDefiningOp<triton::BroadcastOp>();
  auto expand = broadcast
                    ? broadcast.getSrc().getDefiningOp<triton::ExpandDimsOp>()
                    : triton::ExpandDimsOp();
  auto type = cast<RankedTensorType>(tile.getType());
  bool isFactor = expand && expand.getAxis() == axis && type.getRank() == 3 &&
                  type.getDimSize(axis) >= kShortest;
  return isFactor ? expand.getSrc() : Value();
}

std::optional<BroadcastProduct> BroadcastProduct::match(triton::ReduceOp sum) {
  auto factors = sum->getOperand(0).getDefiningOp<arith::MulFOp>();
  if (!factors || sum->getNumOperands() != 1 ||
      classifyCombiner(sum.getCombineOp()) != Combiner::Sum ||
      getElementTypeOrSelf(factors.getType()).getIntOrFloatBitWidth() > 32)
    return std::nullopt;
  Value lhs = matchFactor(factors.getLhs(), 2);
  Value rhs = matchFactor(factors.getRhs(), 0);
  if (!lhs || !rhs)
    return std::nullopt;
  return BroadcastProduct{sum, factors, lhs, rhs};
}

bool BroadcastProduct::isProduct() {
  auto shape = [](Value tile) {
    return cast<RankedTensorType>(tile.getType()).getShape();
  };
  return sum.getAxis() == 1 && shape(lhs)[1] == shape(rhs)[0] &&
         shape(lhs)[0] == shape(factors)[0] &&
         shape(rhs)[1] == shape(factors)[2];
}
