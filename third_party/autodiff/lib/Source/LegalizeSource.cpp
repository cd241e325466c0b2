//===- LegalizeSource.cpp - What has no form in Python, by what has one ---===//
#include "autodiff/Source/Passes.h"

#include "autodiff/Builders/Tile.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LEGALIZESOURCE
#include "autodiff/Source/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A truncation to one bit.
struct LastBit : OpRewritePattern<arith::TruncIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncIOp op,
                                PatternRewriter &b) const override {
    Value number = op.getIn();
    Type type = number.getType();
    if (!getElementTypeOrSelf(op.getType()).isInteger(1))
      return failure();
    Location loc = op.getLoc();
    Value bit =
        arith::AndIOp::create(b, loc, number, integerOf(b, loc, type, 1));
    b.replaceOpWithNewOp<arith::CmpIOp>(op, arith::CmpIPredicate::ne, bit,
                                        integerOf(b, loc, type, 0));
    return success();
  }
};

struct Masked : OpRewritePattern<triton::AtomicRMWOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(triton::AtomicRMWOp op,
                                PatternRewriter &b) const override {
    if (op.getMask())
      return failure();
    Type type = b.getI1Type();
    if (auto tile = dyn_cast<RankedTensorType>(op.getType()))
      type = tile.clone(type);
    Value all = integerOf(b, op.getLoc(), type, 1);
    b.modifyOpInPlace(op, [&] { op.getMaskMutable().assign(all); });
    return success();
  }
};

/// An undefined value becomes zero.
struct Poison : OpRewritePattern<ub::PoisonOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ub::PoisonOp op,
                                PatternRewriter &b) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isIntOrFloat())
      return failure();
    b.replaceOp(op, zeroOf(b, op.getLoc(), type));
    return success();
  }
};

struct LegalizeSource : autodiff::impl::LegalizeSourceBase<LegalizeSource> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    patterns.add<LastBit, Masked, Poison>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
