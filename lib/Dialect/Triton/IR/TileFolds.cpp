//===- TileFolds.cpp - folds and canonical forms of tile operations -------===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::triton;

/// A constant that is the same everywhere, with the shape of `type`.
static OpFoldResult foldUniform(Attribute operand, Type type) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(operand);
  if (!splat)
    return {};
  return splat.resizeSplat(cast<ShapedType>(type));
}

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  Attribute value = adaptor.getSrc();
  if (!isa_and_nonnull<FloatAttr, IntegerAttr>(value))
    return {};
  return SplatElementsAttr::get(cast<ShapedType>(getType()), value);
}

OpFoldResult UnsplatOp::fold(FoldAdaptor adaptor) {
  if (auto splat = getSrc().getDefiningOp<SplatOp>())
    return splat.getSrc();
  if (auto constant = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSrc()))
    return constant.getSplatValue<Attribute>();
  return {};
}

OpFoldResult ExpandDimsOp::fold(FoldAdaptor adaptor) {
  return foldUniform(adaptor.getSrc(), getType());
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  return foldUniform(adaptor.getSrc(), getType());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  // A reordering reshape is the identity too, if nothing asks for its layout.
  if (getSrc().getType() == getType() && !getAllowReorder() &&
      !getEfficientLayout())
    return getSrc();
  return foldUniform(adaptor.getSrc(), getType());
}

static bool isIdentity(ArrayRef<int32_t> order) {
  for (auto [i, axis] : llvm::enumerate(order))
    if (static_cast<int32_t>(i) != axis)
      return false;
  return true;
}

OpFoldResult TransOp::fold(FoldAdaptor adaptor) {
  if (isIdentity(getOrder()))
    return getSrc();
  return foldUniform(adaptor.getSrc(), getType());
}

LogicalResult SplitOp::fold(FoldAdaptor adaptor,
                            SmallVectorImpl<OpFoldResult> &results) {
  if (auto join = getSrc().getDefiningOp<JoinOp>()) {
    results.assign({OpFoldResult(join.getLhs()), OpFoldResult(join.getRhs())});
    return success();
  }
  if (OpFoldResult half =
          foldUniform(adaptor.getSrc(), getOutLHS().getType())) {
    results.assign(2, half);
    return success();
  }
  return failure();
}

OpFoldResult MakeRangeOp::fold(FoldAdaptor) {
  int64_t start = getStartAttr().getInt(), end = getEndAttr().getInt();
  if (end - start != 1)
    return {};
  return SplatElementsAttr::get(cast<ShapedType>(getType()),
                                Builder(getContext()).getI32IntegerAttr(start));
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {
/// op(splat x) -> splat x
template <typename Op> struct SplatThrough : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto splat = op.getSrc().template getDefiningOp<SplatOp>();
    if (!splat)
      return failure();
    rewriter.replaceOpWithNewOp<SplatOp>(op, op.getType(), splat.getSrc());
    return success();
  }
};

/// broadcast(broadcast x) -> broadcast x
struct MergeBroadcasts : public OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getSrc().getDefiningOp<BroadcastOp>();
    if (!inner)
      return failure();
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getSrc());
    return success();
  }
};

/// reshape(reshape x) -> reshape x
struct MergeReshapes : public OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getSrc().getDefiningOp<ReshapeOp>();
    if (!inner || inner.getEfficientLayout())
      return failure();
    bool reorder = op.getAllowReorder() || inner.getAllowReorder();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getSrc(),
                                           reorder, op.getEfficientLayout());
    return success();
  }
};

/// reshape(expand_dims x) -> reshape x
struct ReshapeWithoutExpanding : public OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getSrc().getDefiningOp<ExpandDimsOp>();
    if (!inner)
      return failure();
    rewriter.modifyOpInPlace(
        op, [&] { op.getSrcMutable().assign(inner.getSrc()); });
    return success();
  }
};

/// trans(trans x) -> trans x
struct MergeTransposes : public OpRewritePattern<TransOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TransOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getSrc().getDefiningOp<TransOp>();
    if (!inner)
      return failure();
    SmallVector<int32_t> order;
    for (int32_t axis : op.getOrder())
      order.push_back(inner.getOrder()[axis]);
    rewriter.replaceOpWithNewOp<TransOp>(op, op.getType(), inner.getSrc(),
                                         order);
    return success();
  }
};

/// expand_dims(broadcast x) -> broadcast(expand_dims x): the smaller tile is
/// the one worth computing with.
struct ExpandBeforeBroadcast : public OpRewritePattern<ExpandDimsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ExpandDimsOp op,
                                PatternRewriter &rewriter) const override {
    auto broadcast = op.getSrc().getDefiningOp<BroadcastOp>();
    if (!broadcast)
      return failure();
    Value expanded = ExpandDimsOp::create(rewriter, op.getLoc(),
                                          broadcast.getSrc(), op.getAxis());
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), expanded);
    return success();
  }
};
} // namespace

void ExpandDimsOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *context) {
  patterns.add<SplatThrough<ExpandDimsOp>, ExpandBeforeBroadcast>(context);
}

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<SplatThrough<BroadcastOp>, MergeBroadcasts>(context);
}

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<SplatThrough<ReshapeOp>, MergeReshapes, ReshapeWithoutExpanding>(
      context);
}

void TransOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<SplatThrough<TransOp>, MergeTransposes>(context);
}
