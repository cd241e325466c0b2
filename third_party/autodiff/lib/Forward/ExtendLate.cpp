//===- ExtendLate.cpp - Tiles are moved in their narrow type --------------===//
//
// A tangent that is loaded in half precision is extended at once. If it is then
// transposed for a product, and rounded to what it was, rounding and extension
// only cancel where nothing is between them. Otherwise the tile goes through
// registers, twice as large, where Triton would copy it from memory to shared
// memory.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Forward/Passes.h"

#include "autodiff/Analysis/Moves.h"
#include "autodiff/Builders/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "triton/Dialect/Triton/IR/AxisMap.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_EXTENDLATE
#include "autodiff/Forward/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// The type of elements that `value` is extended from; null if it is not.
static Type getExtendedFrom(Value value) {
  auto extension = value.getDefiningOp<arith::ExtFOp>();
  return extension ? getElementTypeOrSelf(extension.getIn().getType()) : Type();
}

/// `value`, which is extended from `element` or is a constant, in that type;
/// null if it cannot be written so.
static Value narrow(OpBuilder &b, Value value, Type element) {
  if (getExtendedFrom(value) == element)
    return value.getDefiningOp<arith::ExtFOp>().getIn();
  APFloat number(0.0);
  if (!matchPattern(value, m_ConstantFloat(&number)))
    return {};
  APFloat rounded = number;
  bool isRounded;
  rounded.convert(cast<FloatType>(element).getFloatSemantics(),
                  APFloat::rmNearestTiesToEven, &isRounded);
  Type type = withElementType(value.getType(), element);
  return isRounded
             ? Value()
             : constantOf(b, value.getLoc(), type, number.convertToDouble());
}

/// Moves a tile, then extends it.
static LogicalResult extendMoved(Operation *op, PatternRewriter &rewriter) {
  // To repeat elements first would be to extend more of them; an axis is mostly
  // made for that.
  if (!onlyMoves(op) || triton::isRepetition(op))
    return failure();
  Type element = getExtendedFrom(op->getOperand(0));
  if (!element)
    return failure();
  Type type = op->getResult(0).getType();
  Operation *moved = rewriter.clone(*op);
  rewriter.modifyOpInPlace(moved, [&] {
    moved->setOperand(0, op->getOperand(0).getDefiningOp()->getOperand(0));
    moved->getResult(0).setType(withElementType(type, element));
  });
  rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, type, moved->getResult(0));
  return success();
}

/// Chooses between tiles, then extends them.
static LogicalResult extendChosen(arith::SelectOp op,
                                  PatternRewriter &rewriter) {
  Type element = getExtendedFrom(op.getTrueValue());
  if (!element)
    element = getExtendedFrom(op.getFalseValue());
  if (!element)
    return failure();
  Value a = narrow(rewriter, op.getTrueValue(), element);
  Value b = narrow(rewriter, op.getFalseValue(), element);
  if (!a || !b)
    return failure();
  Value chosen =
      arith::SelectOp::create(rewriter, op.getLoc(), op.getCondition(), a, b);
  rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, op.getType(), chosen);
  return success();
}

namespace {
struct ExtendMoved : RewritePattern {
  explicit ExtendMoved(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    return extendMoved(op, rewriter);
  }
};

struct ExtendLate : autodiff::impl::ExtendLateBase<ExtendLate> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExtendMoved>(&getContext());
    patterns.add(extendChosen);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
