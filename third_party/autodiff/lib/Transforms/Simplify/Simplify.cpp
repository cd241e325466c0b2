//===- Simplify.cpp - Fold what differentiation leaves behind -------------===//
#include "Factoring.h"
#include "Selections.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/Combiner.h"
#include "autodiff/Builders/Reduction.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Position.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SIMPLIFY
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A sum over an axis of size one is a reshape.
struct SumOfOne : OpRewritePattern<triton::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(triton::ReduceOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getSrcs().size() != 1)
      return failure();
    auto type = cast<RankedTensorType>(op.getSrcs()[0].getType());
    auto result = dyn_cast<RankedTensorType>(op.getResult()[0].getType());
    if (type.getDimSize(op.getAxis()) != 1 || !result ||
        classifyCombiner(op.getCombineOp()) == Combiner::Other)
      return failure();
    rewriter.replaceOpWithNewOp<triton::ReshapeOp>(op, result, op.getSrcs()[0]);
    return success();
  }
};

/// A sum or a maximum over two axes starts with the inner one, whose elements
/// few threads hold: the rest is small.
struct ReduceInnerFirst : OpRewritePattern<triton::ReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(triton::ReduceOp op,
                                PatternRewriter &rewriter) const override {
    auto first = op.getSrcs()[0].getDefiningOp<triton::ReduceOp>();
    if (!first || !first->hasOneUse() || first.getAxis() > op.getAxis() ||
        op.getSrcs().size() != 1 || first.getSrcs().size() != 1)
      return failure();
    Combiner combiner = classifyCombiner(op.getCombineOp());
    if (combiner == Combiner::Other ||
        combiner != classifyCombiner(first.getCombineOp()))
      return failure();
    // Without the outer axis, the numbers of later axes are one lower.
    Value inner = reduceAs(rewriter, op, first.getSrcs()[0], op.getAxis() + 1);
    rewriter.replaceOp(op, reduceAs(rewriter, op, inner, first.getAxis()));
    return success();
  }
};

/// x / s = x · r, if there is r = 1 / s. For a norm, the forward stores r, and
/// s is not needed then. Only for cotangents: values of the forward have to be
/// rounded, and compared, as there.
struct MultiplyByReciprocal : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;

  static bool isCotangent(Value value) {
    if (!value.getDefiningOp())
      return false;
    SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.inclusive = true;
    options.omitBlockArguments = true;
    (void)getBackwardSlice(value, &slice, options);
    return llvm::any_of(slice, [](Operation *op) {
      return op->walk([](UpstreamOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
    });
  }

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    for (Operation *user : op.getRhs().getUsers()) {
      auto reciprocal = dyn_cast<arith::DivFOp>(user);
      if (!reciprocal || reciprocal.getRhs() != op.getRhs() ||
          !matchPattern(reciprocal.getLhs(), m_OneFloat()) ||
          reciprocal->getBlock() != op->getBlock() ||
          !reciprocal->isBeforeInBlock(op) || !isCotangent(op.getLhs()))
        continue;
      Value factor = reciprocal;
      for (Operation *named : reciprocal->getUsers())
        if (isa<ResidualOp>(named) && named->isBeforeInBlock(op))
          factor = named->getResult(0);
      rewriter.replaceOpWithNewOp<arith::MulFOp>(op, op.getLhs(), factor);
      return success();
    }
    return failure();
  }
};

/// x + dot(a, b, 0) = dot(a, b, x), unless x broadcasts a row: x would be
/// needed before the product, and Triton would not load it ahead.
struct AddIntoDot : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    for (auto [product, sum] : {std::pair(op.getLhs(), op.getRhs()),
                                std::pair(op.getRhs(), op.getLhs())}) {
      auto dot = product.getDefiningOp<triton::DotOp>();
      if (!dot || !dot->hasOneUse() ||
          sum.getDefiningOp<triton::BroadcastOp>() ||
          !matchPattern(dot.getC(), m_AnyZeroFloat()))
        continue;
      // The sum may only be computed after the product.
      Operation *copy = rewriter.clone(*dot);
      copy->setOperand(2, sum);
      if (!isOfAdjoint(dot.getLoc()))
        copy->setLoc(op.getLoc());
      rewriter.replaceOp(op, copy);
      return success();
    }
    return failure();
  }
};

/// Removes unused results of a loop: they are not used after the loop, and
/// inside only to compute the next value of themselves.
struct PruneCarried : OpRewritePattern<scf::ForOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(scf::ForOp loop,
                                PatternRewriter &rewriter) const override;
};
} // namespace

/// The carried values of `body` that matter: they are used after the loop
/// (`needed`), by an effect inside, or by another one that matters. `numberOf`
/// gives the number of an argument of the body.
static llvm::SmallBitVector findLiveCarried(
    Block *body, ArrayRef<unsigned> needed,
    llvm::function_ref<std::optional<unsigned>(BlockArgument)> numberOf) {
  Operation *yield = body->getTerminator();
  llvm::DenseSet<Operation *> liveOps;
  llvm::SmallBitVector live(yield->getNumOperands());
  SmallVector<Value> worklist;
  auto need = [&](Value value) { worklist.push_back(value); };
  auto needOp = [&](Operation *op) {
    if (!liveOps.insert(op).second)
      return;
    for (Value operand : op->getOperands())
      need(operand);
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        need(operand);
    });
  };
  for (Operation &op : body->without_terminator())
    if (!isOpTriviallyDead(&op) && !wouldOpBeTriviallyDead(&op))
      needOp(&op);
  auto needCarried = [&](unsigned index) {
    if (live.test(index))
      return;
    live.set(index);
    need(yield->getOperand(index));
  };
  for (unsigned index : needed)
    needCarried(index);
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == body)
        if (std::optional<unsigned> index = numberOf(argument))
          needCarried(*index);
      continue;
    }
    if (Operation *op = body->findAncestorOpInBlock(*value.getDefiningOp()))
      needOp(op);
  }
  return live;
}

LogicalResult PruneCarried::matchAndRewrite(scf::ForOp loop,
                                            PatternRewriter &rewriter) const {
  SmallVector<unsigned> needed;
  for (OpResult result : loop.getResults())
    if (!result.use_empty())
      needed.push_back(result.getResultNumber());
  llvm::SmallBitVector live =
      findLiveCarried(loop.getBody(), needed,
                      [](BlockArgument argument) -> std::optional<unsigned> {
                        if (argument.getArgNumber() == 0)
                          return std::nullopt; // the induction variable
                        return argument.getArgNumber() - 1;
                      });
  if (live.all())
    return failure();
  SmallVector<Value> inits;
  for (unsigned index : live.set_bits())
    inits.push_back(loop.getInitArgs()[index]);
  auto pruned =
      scf::ForOp::create(rewriter, loop.getLoc(), loop.getLowerBound(),
                         loop.getUpperBound(), loop.getStep(), inits);
  pruned->setDiscardableAttrs(loop->getDiscardableAttrDictionary());

  // A dead carried value is replaced by its initial value: all that is computed
  // from it is dead, too.
  SmallVector<Value> arguments{pruned.getInductionVar()};
  SmallVector<Value> results;
  unsigned kept = 0;
  for (unsigned index = 0; index < loop.getNumResults(); ++index) {
    bool isLive = live.test(index);
    arguments.push_back(isLive ? Value(pruned.getRegionIterArg(kept))
                               : loop.getInitArgs()[index]);
    results.push_back(isLive ? Value(pruned.getResult(kept))
                             : loop.getInitArgs()[index]);
    kept += isLive;
  }
  Operation *yield = loop.getBody()->getTerminator();
  if (Block *body = pruned.getBody(); !body->empty())
    rewriter.eraseOp(body->getTerminator());
  rewriter.mergeBlocks(loop.getBody(), pruned.getBody(), arguments);
  // Only now, since a block argument that is yielded has been replaced.
  SmallVector<Value> yielded;
  for (unsigned index : live.set_bits())
    yielded.push_back(yield->getOperand(index));
  rewriter.setInsertionPoint(yield);
  rewriter.replaceOpWithNewOp<scf::YieldOp>(yield, yielded);
  rewriter.replaceOp(loop, results);
  return success();
}

namespace {
/// The same for a while loop with all work in the body: a value that nothing
/// depends on is not updated any more, and then not carried.
struct PruneWhile : OpRewritePattern<scf::WhileOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(scf::WhileOp loop,
                                PatternRewriter &rewriter) const override {
    if (!llvm::hasSingleElement(*loop.getBeforeBody()))
      return failure();
    scf::ConditionOp condition = loop.getConditionOp();
    auto numberOf = [&](Value value) -> std::optional<unsigned> {
      auto argument = dyn_cast<BlockArgument>(value);
      if (!argument || argument.getOwner() != loop.getBeforeBody())
        return std::nullopt;
      return argument.getArgNumber();
    };
    SmallVector<unsigned> needed;
    auto need = [&](Value value) {
      if (std::optional<unsigned> index = numberOf(value))
        needed.push_back(*index);
    };
    need(condition.getCondition());
    for (auto [passed, result] :
         llvm::zip_equal(condition.getArgs(), loop.getResults()))
      if (!result.use_empty())
        need(passed);
    llvm::SmallBitVector live = findLiveCarried(
        loop.getAfterBody(), needed, [&](BlockArgument argument) {
          return numberOf(condition.getArgs()[argument.getArgNumber()]);
        });
    live.flip();
    bool changed = false;
    scf::YieldOp yield = loop.getYieldOp();
    for (unsigned index : live.set_bits()) {
      if (yield.getOperand(index) == loop.getInits()[index])
        continue;
      rewriter.modifyOpInPlace(
          yield, [&] { yield.setOperand(index, loop.getInits()[index]); });
      changed = true;
    }
    return success(changed);
  }
};

/// Removes a while loop whose body never runs. Triton's compiler crashes on
/// loads that it finds to be unreachable.
struct SkipWhile : OpRewritePattern<scf::WhileOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(scf::WhileOp loop,
                                PatternRewriter &rewriter) const override {
    scf::ConditionOp condition = loop.getConditionOp();
    Value runs = condition.getCondition();
    auto argument = dyn_cast<BlockArgument>(runs);
    if (argument && argument.getOwner() == loop.getBeforeBody())
      runs = loop.getInits()[argument.getArgNumber()];
    if (!matchPattern(runs, m_Zero()))
      return failure();
    // The condition is still computed once.
    rewriter.inlineBlockBefore(loop.getBeforeBody(), loop, loop.getInits());
    rewriter.replaceOp(loop, condition.getArgs());
    rewriter.eraseOp(condition);
    return success();
  }
};

struct Simplify : autodiff::impl::SimplifyBase<Simplify> {
  void runOnOperation() override {
    // Sums in the user's kernel stay as they are written.
    llvm::StringRef role = getRole(getOperation());
    bool isDerived = role == "backward";
    RewritePatternSet patterns(&getContext());
    patterns.add<SumOfOne, PruneCarried, SkipWhile>(&getContext());
    // A loop that will be reversed must count its iterations.
    if (!role.empty() && role != "differentiated")
      patterns.add<PruneWhile>(&getContext());
    if (isDerived) {
      patterns.add<AddIntoDot, ReduceInnerFirst, MultiplyByReciprocal>(
          &getContext());
      populateSelectionPatterns(patterns);
      populateFactoringPatterns(patterns);
      populateUniformFactorPatterns(patterns);
    }
    // The canonicalizer, which runs next, simplifies regions.
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    // If MLIR's limit of rounds is reached, the result is correct, if not
    // final.
    (void)applyPatternsGreedily(getOperation(), std::move(patterns), config);
  }
};
} // namespace
