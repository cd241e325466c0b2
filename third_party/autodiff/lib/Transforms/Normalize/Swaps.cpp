//===- Swaps.cpp - Swaps of elements that are made with bits --------------===//
#include "autodiff/Analysis/Moves.h"
#include "autodiff/Builders/Reduction.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_RAISESWAPS
#define GEN_PASS_DEF_LOWERSWAPS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Whether a reduction combines by exclusive or.
static bool isExclusiveOr(triton::ReduceOp reduce) {
  return isa_and_nonnull<arith::XOrIOp>(reduce.getSingleCombiner());
}

namespace {
/// x ^ broadcast(x₀ ^ x₁): every element becomes the other one.
struct RaiseSwap : OpRewritePattern<arith::XOrIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::XOrIOp op,
                                PatternRewriter &rewriter) const override {
    for (unsigned side : {0, 1}) {
      Value tile = op->getOperand(1 - side);
      std::optional<Repeated> both = matchRepeated(op->getOperand(side));
      auto reduce =
          both ? both->source.getDefiningOp<triton::ReduceOp>() : nullptr;
      if (!reduce || !isExclusiveOr(reduce) || reduce.getSrcs()[0] != tile ||
          reduce.getAxis() != both->axis ||
          cast<RankedTensorType>(tile.getType()).getDimSize(both->axis) != 2)
        continue;
      rewriter.replaceOpWithNewOp<SwapOp>(op, tile, both->axis);
      return success();
    }
    return failure();
  }
};

/// An exclusive or of elements that are equal along an axis is zero: they are
/// not swapped.
struct CancelEqual : OpRewritePattern<triton::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(triton::ReduceOp op,
                                PatternRewriter &rewriter) const override {
    if (!isExclusiveOr(op))
      return failure();
    Value tile = op.getSrcs()[0];
    auto type = cast<RankedTensorType>(tile.getType());
    auto broadcast = tile.getDefiningOp<triton::BroadcastOp>();
    bool areEqual =
        tile.getDefiningOp<triton::SplatOp>() ||
        (broadcast && cast<RankedTensorType>(broadcast.getSrc().getType())
                              .getDimSize(op.getAxis()) == 1);
    if (!areEqual || type.getDimSize(op.getAxis()) % 2)
      return failure();
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, cast<TypedAttr>(rewriter.getZeroAttr(op.getResult()[0].getType())));
    return success();
  }
};

/// An operation that moves the bits of floats is replaced by one that moves
/// floats.
struct MoveFloats : OpRewritePattern<triton::BitcastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(triton::BitcastOp op,
                                PatternRewriter &rewriter) const override {
    Operation *move = op.getSrc().getDefiningOp();
    Type element = getElementTypeOrSelf(op.getType());
    if (!isa<FloatType>(element) || !triton::isMove(move))
      return failure();
    Value bits = move->getOperand(0);
    Value source = triton::BitcastOp::create(
        rewriter, op.getLoc(), withElementType(bits.getType(), element), bits);
    Operation *moved = rewriter.clone(*move);
    moved->setOperand(0, source);
    moved->getResult(0).setType(op.getType());
    rewriter.replaceOp(op, moved);
    return success();
  }
};

struct RaiseSwaps : autodiff::impl::RaiseSwapsBase<RaiseSwaps> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RaiseSwap, CancelEqual, MoveFloats>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

static void lower(SwapOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getType());
  RankedTensorType bitsType =
      type.clone(b.getIntegerType(type.getElementTypeBitWidth()));
  Value bits = op.getSrc();
  if (bitsType != type)
    bits = triton::BitcastOp::create(b, loc, bitsType, bits);
  Value both =
      repeatAlong(b, loc, reduceOver<arith::XOrIOp>(b, loc, bits, op.getAxis()),
                  op.getAxis(), bitsType);
  Value swapped = arith::XOrIOp::create(b, loc, bits, both);
  if (bitsType != type)
    swapped = triton::BitcastOp::create(b, loc, type, swapped);
  op.getResult().replaceAllUsesWith(swapped);
  op.erase();
}

namespace {
struct LowerSwaps : autodiff::impl::LowerSwapsBase<LowerSwaps> {
  void runOnOperation() override { getOperation().walk(lower); }
};
} // namespace
