//===- Factoring.cpp - Take common factors out of sums --------------------===//
//
// Adjoints of broadcasts are reductions, and the summed values often have a
// factor that is constant along the axis: Σ (x/s) = (Σ x)/s. Done once per row
// instead of once per element, that is less work and one rounding less.
//
//===----------------------------------------------------------------------===//
#include "Factoring.h"
#include "autodiff/Analysis/Moves.h"
#include "autodiff/Builders/Combiner.h"
#include "autodiff/Builders/Tile.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

/// x of 0 − x; null if `value` is not a negation.
static Value matchNegation(Value value) {
  auto difference = value.getDefiningOp<arith::SubFOp>();
  if (difference && matchPattern(difference.getLhs(), m_AnyZeroFloat()))
    return difference.getRhs();
  return {};
}

static Value negate(OpBuilder &b, Location loc, Value value) {
  return -Tile(b, loc, value);
}

namespace {
/// Σ (x · r), Σ (x / r) and Σ (0 − x), where r is broadcast along the summed
/// axis.
struct SumOfProduct : OpRewritePattern<triton::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(triton::ReduceOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getSrcs().size() != 1 ||
        classifyCombiner(op.getCombineOp()) != Combiner::Sum)
      return failure();
    Value summed = op.getSrcs()[0];
    // Sums in half precision are the forward's own, which divides first to
    // avoid overflow.
    if (getElementTypeOrSelf(summed.getType()).getIntOrFloatBitWidth() < 32)
      return failure();
    Location loc = op.getLoc();
    if (Value negated = matchNegation(summed)) {
      Value sum = sumOver(rewriter, loc, negated, op.getAxis());
      rewriter.replaceOp(op, negate(rewriter, loc, sum));
      return success();
    }
    Operation *terms = summed.getDefiningOp();
    bool isQuotient = isa_and_nonnull<arith::DivFOp>(terms);
    if (!isQuotient && !isa_and_nonnull<arith::MulFOp>(terms))
      return failure();
    for (unsigned factor : {1, 0}) {
      if (factor == 0 && isQuotient)
        continue;
      std::optional<Repeated> repeated =
          matchRepeated(terms->getOperand(factor));
      if (!repeated || repeated->axis != op.getAxis())
        continue;
      Tile sum(
          rewriter, loc,
          sumOver(rewriter, loc, terms->getOperand(1 - factor), op.getAxis()));
      Tile source = sum.like(repeated->source);
      Value product = isQuotient ? sum / source : sum * source;
      rewriter.replaceOp(op, product);
      return success();
    }
    return failure();
  }
};

/// x + broadcast(0 − y) = x − broadcast(y).
struct AddRepeatedNegation : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    for (unsigned index : {1, 0}) {
      std::optional<Repeated> repeated = matchRepeated(op->getOperand(index));
      Value negated = repeated ? matchNegation(repeated->source) : Value();
      if (!negated)
        continue;
      Value tile = repeatAlong(rewriter, op.getLoc(), negated, repeated->axis,
                               cast<RankedTensorType>(op.getType()));
      rewriter.replaceOpWithNewOp<arith::SubFOp>(op, op->getOperand(1 - index),
                                                 tile);
      return success();
    }
    return failure();
  }
};

/// x/r ± broadcast(y/s) = (x ± broadcast(y))/r, where r is broadcast(s).
template <typename OpT> struct CommonDivisor : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    auto quotient = op.getLhs().template getDefiningOp<arith::DivFOp>();
    std::optional<Repeated> term = matchRepeated(op.getRhs());
    if (!quotient || !term)
      return failure();
    std::optional<Repeated> divisor = matchRepeated(quotient.getRhs());
    auto row = term->source.getDefiningOp<arith::DivFOp>();
    if (!divisor || !row || divisor->axis != term->axis ||
        divisor->source != row.getRhs())
      return failure();
    Value repeated =
        repeatAlong(rewriter, op.getLoc(), row.getLhs(), term->axis,
                    cast<RankedTensorType>(op.getType()));
    Value numerator =
        OpT::create(rewriter, op.getLoc(), quotient.getLhs(), repeated);
    rewriter.replaceOpWithNewOp<arith::DivFOp>(op, numerator,
                                               quotient.getRhs());
    return success();
  }
};
} // namespace

void mlir::autodiff::populateFactoringPatterns(RewritePatternSet &patterns) {
  patterns.add<SumOfProduct, AddRepeatedNegation, CommonDivisor<arith::AddFOp>,
               CommonDivisor<arith::SubFOp>>(patterns.getContext());
}
