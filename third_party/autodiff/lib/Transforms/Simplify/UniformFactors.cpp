//===- UniformFactors.cpp - Take factors out of loops and branches --------===//
//
// A loop that sums products, itself or in inner loops, may leave out a factor
// that is the same for whole tiles and in all iterations: Σ dot(x·c, y) = c · Σ
// dot(x, y). So may a branch that yields such a sum or zero, and a loop that
// continues it. If there are no iterations, the sum is zero and 0·c has to be
// zero, so c has to be finite.
//
//===----------------------------------------------------------------------===//
#include "Factoring.h"
#include "Tiles/ProductSums.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Rules/Infinities.h"
#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Zero is a multiple of everything.
static bool isZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat());
}

static bool isBefore(Value value, Operation *op) {
  return !op->isAncestor(value.getParentRegion()->getParentOp());
}

/// The constant, or the float from before `op`, that the tile `value` is a
/// splat of.
static OpFoldResult matchUniform(Value value, Operation *op) {
  DenseFPElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return constant.isSplat() && constant.getSplatValue<APFloat>().isFinite()
               ? constant.getSplatValue<Attribute>()
               : OpFoldResult();
  auto splat = value.getDefiningOp<triton::SplatOp>();
  return splat && isBefore(splat.getSrc(), op) &&
                 isFiniteEverywhere(splat.getSrc())
             ? splat.getSrc()
             : OpFoldResult();
}

/// The operand whose factors are factors of the result; null if there is none.
static OpOperand *passFactor(Operation *op) {
  if (isa<arith::TruncFOp, triton::TransOp>(op))
    return &op->getOpOperand(0);
  if (isa<arith::SelectOp>(op) && isZero(op->getOperand(2)))
    return &op->getOpOperand(1);
  return nullptr;
}

namespace {
/// A factor of float tiles that `op` need not compute.
struct Factor {
  OpFoldResult value;
  Operation *op;

  /// The operand of a product that is this factor.
  OpOperand *findIn(Operation *product) const {
    for (OpOperand &operand : product->getOpOperands())
      if (matchUniform(operand.get(), op) == value)
        return &operand;
    return nullptr;
  }

  bool isIn(Value tile) const {
    if (isZero(tile))
      return true;
    Operation *source = tile.getDefiningOp();
    if (isa_and_nonnull<arith::MulFOp>(source))
      return findIn(source);
    OpOperand *inner = source ? passFactor(source) : nullptr;
    return inner && isIn(inner->get());
  }

  /// `tile` divided by this factor.
  Value takeOut(Value tile, OpBuilder &b) const {
    if (isZero(tile))
      return tile;
    Operation *source = tile.getDefiningOp();
    if (isa<arith::MulFOp>(source))
      return source->getOperand(1 - findIn(source)->getOperandNumber());
    OpOperand *inner = passFactor(source);
    Value rest = takeOut(inner->get(), b);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(source);
    IRMapping map;
    map.map(inner->get(), rest);
    return b.clone(*source, map)->getResult(0);
  }

  /// Multiplies a result of `op` by the factor at all uses.
  void putBack(Value result, PatternRewriter &b) const {
    b.setInsertionPointAfter(op);
    auto type = cast<RankedTensorType>(result.getType());
    Location loc = op->getLoc();
    Value tile;
    if (auto scalar = dyn_cast<Value>(value))
      tile = triton::SplatOp::create(b, loc, type, scalar);
    else
      tile = arith::ConstantOp::create(
          b, loc, DenseElementsAttr::get(type, cast<Attribute>(value)));
    auto product = arith::MulFOp::create(b, loc, result, tile);
    b.replaceAllUsesExcept(result, product, product);
  }
};
} // namespace

/// A factor, of this element type, of `tile`, which has no other use.
static std::optional<Factor> findFactor(Value tile, Operation *op,
                                        Type element) {
  Operation *source = tile.getDefiningOp();
  if (!source || !source->hasOneUse() || isZero(tile))
    return std::nullopt;
  if (isa<arith::MulFOp>(source)) {
    if (getElementTypeOrSelf(tile.getType()) == element)
      for (Value operand : source->getOperands())
        if (OpFoldResult value = matchUniform(operand, op))
          return Factor{value, op};
    return std::nullopt;
  }
  OpOperand *inner = passFactor(source);
  return inner ? findFactor(inner->get(), op, element) : std::nullopt;
}

namespace {
struct FactorOfLoop : OpRewritePattern<scf::ForOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(scf::ForOp loop,
                                PatternRewriter &rewriter) const override {
    for (unsigned index = 0; index < loop.getNumResults(); ++index) {
      triton::DotOp dot = findSummand(loop, index);
      if (!dot)
        continue;
      Type element = getElementTypeOrSelf(dot.getType());
      OpOperand &init = loop.getInitArgsMutable()[index];
      for (OpOperand *operand : {&dot.getAMutable(), &dot.getBMutable()}) {
        std::optional<Factor> factor =
            findFactor(operand->get(), loop, element);
        if (!factor || !factor->isIn(init.get()))
          continue;
        Value rest = factor->takeOut(operand->get(), rewriter);
        rewriter.modifyOpInPlace(dot, [&] { operand->set(rest); });
        Value before = factor->takeOut(init.get(), rewriter);
        rewriter.modifyOpInPlace(loop, [&] { init.set(before); });
        if (!mutation::isMade("factors:lost"))
          factor->putBack(loop.getResult(index), rewriter);
        return success();
      }
    }
    return failure();
  }
};

struct FactorOfBranch : OpRewritePattern<scf::IfOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(scf::IfOp branch,
                                PatternRewriter &rewriter) const override {
    for (OpResult result : branch.getResults()) {
      if (!isa<RankedTensorType>(result.getType()))
        continue;
      unsigned index = result.getResultNumber();
      OpOperand &a = branch.thenYield()->getOpOperand(index);
      OpOperand &b = branch.elseYield()->getOpOperand(index);
      Type element = getElementTypeOrSelf(result.getType());
      std::optional<Factor> factor = findFactor(a.get(), branch, element);
      if (!factor)
        factor = findFactor(b.get(), branch, element);
      if (!factor || !factor->isIn(a.get()) || !factor->isIn(b.get()))
        continue;
      for (OpOperand *yielded : {&a, &b}) {
        Value rest = factor->takeOut(yielded->get(), rewriter);
        rewriter.modifyOpInPlace(yielded->getOwner(),
                                 [&] { yielded->set(rest); });
      }
      factor->putBack(result, rewriter);
      return success();
    }
    return failure();
  }
};

/// Hoists floats that only depend on values from before a branch: the sides
/// then have common factors. A chain of operations is hoisted at once, since a
/// single pass over the kernel has to suffice.
struct FloatsBeforeBranch : OpRewritePattern<scf::IfOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(scf::IfOp branch,
                                PatternRewriter &rewriter) const override {
    auto isKnown = [&](Value value) { return isBefore(value, branch); };
    bool changed = false;
    for (Region &side : branch->getRegions())
      for (Operation &op : llvm::make_early_inc_range(side.getOps())) {
        if (op.getNumResults() != 1 ||
            !isa<FloatType>(op.getResult(0).getType()) ||
            op.getNumRegions() != 0 || !isMemoryEffectFree(&op) ||
            !isSpeculatable(&op) || !llvm::all_of(op.getOperands(), isKnown))
          continue;
        rewriter.moveOpBefore(&op, branch);
        changed = true;
      }
    return success(changed);
  }
};
} // namespace

void mlir::autodiff::populateUniformFactorPatterns(
    RewritePatternSet &patterns) {
  patterns.add<FactorOfLoop, FactorOfBranch, FloatsBeforeBranch>(
      patterns.getContext());
}
