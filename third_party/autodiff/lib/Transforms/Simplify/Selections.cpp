//===- Selections.cpp - Fewer choices between values and zeros ------------===//
//
// Cotangents of lanes that a mask or a selection excludes are zero, and every
// rule keeps them zero by a selection. Most of these zeros never reach memory,
// or are added to something that is zero in the same lanes, so the selection
// can be removed.
//
//===----------------------------------------------------------------------===//
#include "Selections.h"

#include "autodiff/Builders/Tile.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// select(mask, load, 0), where the load has that mask and gives zero
/// elsewhere, is the load. The same if its result was converted.
struct SelectOfMaskedLoad : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op,
                                PatternRewriter &rewriter) const override {
    Value value = op.getTrueValue();
    if (auto cast = value.getDefiningOp<arith::ExtFOp>())
      value = cast.getIn();
    auto load = value.getDefiningOp<triton::LoadOp>();
    if (!load || load.getMask() != op.getCondition() || !load.getOther() ||
        !matchPattern(load.getOther(), m_PosZeroFloat()) ||
        !matchPattern(op.getFalseValue(), m_PosZeroFloat()))
      return failure();
    rewriter.replaceOp(op, op.getTrueValue());
    return success();
  }
};

/// x == 0 ? 0 : x
struct SelectOfZero : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op,
                                PatternRewriter &rewriter) const override {
    auto compare = op.getCondition().getDefiningOp<arith::CmpFOp>();
    Value value = op.getFalseValue();
    if (!compare || compare.getPredicate() != arith::CmpFPredicate::OEQ ||
        compare.getLhs() != value ||
        !matchPattern(compare.getRhs(), m_AnyZeroFloat()) ||
        !matchPattern(op.getTrueValue(), m_AnyZeroFloat()))
      return failure();
    rewriter.replaceOp(op, value);
    return success();
  }
};

/// A value that is stored under a mask may be anything elsewhere. So a
/// selection by the same mask can be removed from it, and from values it is
/// computed from, if they have no other use.
struct MaskedStore : OpRewritePattern<triton::StoreOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(triton::StoreOp op,
                                PatternRewriter &rewriter) const override;
};
} // namespace

/// The operations of a block, last first, whose results only matter in lanes
/// where `mask` is true.
static SmallVector<Operation *> collectMasked(Block &block, Value mask) {
  llvm::SetVector<Operation *> masked;
  auto isMasked = [&](OpOperand &use) {
    auto store = dyn_cast<triton::StoreOp>(use.getOwner());
    return store ? store.getMask() == mask && &use == &store.getValueMutable()
                 : masked.contains(use.getOwner());
  };
  for (Operation &op : llvm::reverse(block))
    if (op.hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(&op) &&
        llvm::all_of(op.getUses(), isMasked))
      masked.insert(&op);
  return masked.takeVector();
}

LogicalResult MaskedStore::matchAndRewrite(triton::StoreOp op,
                                           PatternRewriter &rewriter) const {
  Value mask = op.getMask();
  if (!mask)
    return failure();
  bool changed = false;
  for (Operation *masked : collectMasked(*op->getBlock(), mask)) {
    auto select = dyn_cast<arith::SelectOp>(masked);
    if (!select)
      continue;
    Value condition = select.getCondition();
    auto both = condition.getDefiningOp<arith::AndIOp>();
    if (condition == mask) {
      rewriter.replaceOp(select, select.getTrueValue());
      changed = true;
    } else if (both && llvm::is_contained(both->getOperands(), mask)) {
      Value rest = both.getLhs() == mask ? both.getRhs() : both.getLhs();
      rewriter.modifyOpInPlace(
          select, [&] { select.getConditionMutable().assign(rest); });
      changed = true;
    }
  }
  return success(changed);
}

namespace {
/// The same for rows that are not stored, as long as operations do not mix
/// rows: first operands of products, and values that loops carry.
struct MaskedRows : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op,
                                PatternRewriter &rewriter) const override;
};
} // namespace

/// The condition on rows that a condition on a tile broadcasts; else null.
static Value getRows(Value condition) {
  auto repeated =
      condition ? condition.getDefiningOp<triton::BroadcastOp>() : nullptr;
  auto type = repeated ? dyn_cast<RankedTensorType>(repeated.getSrc().getType())
                       : RankedTensorType();
  return type && type.getRank() == 2 && type.getDimSize(1) == 1
             ? repeated.getSrc()
             : Value();
}

/// Whether rows of `value` only matter where `rows` is true: `seen` has the
/// values that depend on it.
static bool isStoredByRows(Value value, Value rows,
                           llvm::DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return true;
  auto isTile = [&](Value made) {
    auto type = dyn_cast<RankedTensorType>(made.getType());
    return type && type.getRank() == 2 && isStoredByRows(made, rows, seen);
  };
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    unsigned number = use.getOperandNumber();
    if (auto store = dyn_cast<triton::StoreOp>(user))
      return &use == &store.getValueMutable() &&
             getRows(store.getMask()) == rows;
    if (auto dot = dyn_cast<triton::DotOp>(user))
      return use.get() != dot.getB() && isTile(dot.getResult());
    if (auto loop = dyn_cast<scf::ForOp>(user)) {
      BlockArgument carried = loop.getTiedLoopRegionIterArg(&use);
      return carried && isTile(carried) && isTile(loop.getTiedLoopResult(&use));
    }
    if (isa<scf::YieldOp>(user)) {
      Operation *parent = user->getParentOp();
      auto loop = dyn_cast<scf::ForOp>(parent);
      return (loop || isa<scf::IfOp>(parent)) &&
             isTile(parent->getResult(number)) &&
             (!loop || isTile(loop.getRegionIterArg(number)));
    }
    return user->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(user) &&
           user->getNumResults() == 1 && isTile(user->getResult(0));
  });
}

LogicalResult MaskedRows::matchAndRewrite(arith::SelectOp op,
                                          PatternRewriter &rewriter) const {
  Value rows = getRows(op.getCondition());
  llvm::DenseSet<Value> seen;
  if (!rows || !matchPattern(op.getFalseValue(), m_AnyZeroFloat()) ||
      !isStoredByRows(op.getResult(), rows, seen))
    return failure();
  rewriter.replaceOp(op, op.getTrueValue());
  return success();
}

namespace {
/// c ? value : 0, or with `inverted` c ? 0 : value.
struct Kept {
  arith::SelectOp select;
  bool inverted;

  Value getCondition() { return select.getCondition(); }
  Value getValue() { return select->getOperand(inverted ? 2 : 1); }
};
} // namespace

/// The selection with zero that `value`, which has no other use, is; none if it
/// is none.
static std::optional<Kept> matchKept(Value value) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  if (!select || !select->hasOneUse())
    return std::nullopt;
  if (matchPattern(select.getFalseValue(), m_AnyZeroFloat()))
    return Kept{select, false};
  if (matchPattern(select.getTrueValue(), m_AnyZeroFloat()))
    return Kept{select, true};
  return std::nullopt;
}

/// Replaces `op` by a selection like `kept`, and names it as part of the same
/// value.
static void replace(Operation *op, Kept kept, Value value, Value other,
                    PatternRewriter &rewriter) {
  auto select = arith::SelectOp::create(
      rewriter, kept.select.getLoc(), kept.getCondition(),
      kept.inverted ? other : value, kept.inverted ? value : other);
  rewriter.replaceOp(op, select);
}

namespace {
/// 0 − (c ? x : 0) = c ? 0 − x : 0
struct NegateKept : OpRewritePattern<arith::SubFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SubFOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Kept> kept = matchKept(op.getRhs());
    if (!kept || !matchPattern(op.getLhs(), m_AnyZeroFloat()))
      return failure();
    Value zero = op.getLhs();
    Value negated =
        arith::SubFOp::create(rewriter, op.getLoc(), zero, kept->getValue());
    replace(op, *kept, negated, zero, rewriter);
    return success();
  }
};

/// (c ? x : 0) + (c ? y : 0) = c ? x + y : 0
/// (c ? x : 0) + (c ? 0 : y) = c ? x : y
struct AddKept : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Kept> a = matchKept(op.getLhs()), b = matchKept(op.getRhs());
    if (!a || !b || a->getCondition() != b->getCondition())
      return failure();
    if (a->inverted != b->inverted) {
      replace(op, *a, a->getValue(), b->getValue(), rewriter);
      return success();
    }
    Value zero = constantOf(rewriter, op.getLoc(), op.getType(), 0.0);
    Value sum = arith::AddFOp::create(rewriter, op.getLoc(), a->getValue(),
                                      b->getValue());
    replace(op, *a, sum, zero, rewriter);
    return success();
  }
};
} // namespace

void mlir::autodiff::populateSelectionPatterns(RewritePatternSet &patterns) {
  patterns.add<SelectOfMaskedLoad, SelectOfZero, MaskedStore, MaskedRows,
               NegateKept, AddKept>(patterns.getContext());
}
