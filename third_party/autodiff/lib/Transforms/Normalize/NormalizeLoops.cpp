//===- NormalizeLoops.cpp - The form of while loops -----------------------===//
#include "NormalizeLoops.h"

#include "autodiff/Analysis/TripCounts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Clones the operations of `block` without its terminator.
static void cloneBody(OpBuilder &b, Block &block, IRMapping &map) {
  for (Operation &op : block.without_terminator())
    b.clone(op, map);
}

/// Clones `before`: returns the values that it passes on, and the condition.
static SmallVector<Value> decide(OpBuilder &b, scf::WhileOp loop,
                                 IRMapping &map) {
  cloneBody(b, *loop.getBeforeBody(), map);
  scf::ConditionOp condition = loop.getConditionOp();
  SmallVector<Value> values;
  for (Value passed : condition.getArgs())
    values.push_back(map.lookupOrDefault(passed));
  values.push_back(map.lookupOrDefault(condition.getCondition()));
  return values;
}

/// while (before(x), c) after  ⇒  before(x); while (c) { after; before }
static void rotate(scf::WhileOp loop) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  IRMapping first;
  first.map(loop.getBeforeArguments(), loop.getInits());
  SmallVector<Value> inits = decide(b, loop, first);
  inits.insert(inits.begin(),
               arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0)));
  SmallVector<Type> types{b.getI32Type()};
  llvm::append_range(types, loop.getResultTypes());

  auto before = [&](OpBuilder &b, Location loc, ValueRange carried) {
    scf::ConditionOp::create(b, loc, carried.back(), carried.drop_back());
  };
  auto after = [&](OpBuilder &b, Location loc, ValueRange passed) {
    IRMapping map;
    map.map(loop.getAfterArguments(), passed.drop_front());
    cloneBody(b, *loop.getAfterBody(), map);
    for (auto [argument, next] :
         llvm::zip_equal(loop.getBeforeArguments(), loop.getYieldedValues()))
      map.map(argument, map.lookupOrDefault(next));
    SmallVector<Value> next = decide(b, loop, map);
    Value one = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
    next.insert(next.begin(), arith::AddIOp::create(b, loc, passed[0], one));
    scf::YieldOp::create(b, loc, next);
  };
  auto rotated = scf::WhileOp::create(b, loc, types, inits, before, after);
  rotated->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  loop.replaceAllUsesWith(rotated.getResults().drop_front());
  loop.erase();
}

/// Turns i ≤ n into i < n + 1, as in for loops. (For the largest n, the loop
/// would not end.)
static void compareWithNext(scf::WhileOp loop) {
  auto compare =
      loop.getConditionOp().getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return;
  bool isSwapped = compare.getPredicate() == arith::CmpIPredicate::sge;
  Value counter = isSwapped ? compare.getRhs() : compare.getLhs();
  Value last = isSwapped ? compare.getLhs() : compare.getRhs();
  if ((!isSwapped && compare.getPredicate() != arith::CmpIPredicate::sle) ||
      !isa<BlockArgument>(counter) || !last.getType().isSignlessInteger() ||
      !last.getParentRegion()->isProperAncestor(&loop.getBefore()))
    return;
  OpBuilder b(loop);
  Location loc = compare.getLoc();
  Value one =
      arith::ConstantOp::create(b, loc, b.getIntegerAttr(last.getType(), 1));
  Value end = arith::AddIOp::create(b, loc, last, one);
  b.setInsertionPoint(compare);
  compare.replaceAllUsesWith(
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, counter, end)
          .getResult());
  compare.erase();
}

/// Turns a loop that counts into a for loop; false if it does not count.
static bool countUp(scf::WhileOp loop) {
  compareWithNext(loop);
  IRRewriter rewriter(loop);
  // The counter ends with the first value for which the condition is false.
  // MLIR uses the last one for which it is true, even if there is none.
  SmallVector<OpOperand *> usesOfCounter;
  if (auto compare =
          loop.getConditionOp().getCondition().getDefiningOp<arith::CmpIOp>())
    for (auto [argument, result] :
         llvm::zip(loop.getConditionOp().getArgs(), loop.getResults()))
      if (isa<BlockArgument>(argument) &&
          llvm::is_contained(compare->getOperands(), argument))
        for (OpOperand &use : result.getUses())
          usesOfCounter.push_back(&use);
  Location loc = loop.getLoc();
  FailureOr<scf::ForOp> counted = scf::upliftWhileToForLoop(rewriter, loop);
  if (failed(counted))
    return false;
  if (usesOfCounter.empty())
    return true;
  rewriter.setInsertionPointAfter(*counted);
  Value lower = counted->getLowerBound(), step = counted->getStep();
  Value count = countIterations(rewriter, loc, lower, counted->getUpperBound(),
                                step, counted->getUnsignedCmp());
  Value distance = arith::MulIOp::create(rewriter, loc, count, step);
  Value end = arith::AddIOp::create(rewriter, loc, lower, distance);
  for (OpOperand *use : usesOfCounter)
    use->set(end);
  return true;
}

LogicalResult mlir::autodiff::normalizeLoops(triton::FuncOp kernel) {
  SmallVector<scf::WhileOp> loops;
  auto collect = [&] {
    loops.clear();
    kernel.walk([&](scf::WhileOp loop) { loops.push_back(loop); });
  };
  collect();
  if (loops.empty())
    return success();
  RewritePatternSet patterns(kernel.getContext());
  scf::WhileOp::getCanonicalizationPatterns(patterns, kernel.getContext());
  if (failed(applyPatternsGreedily(kernel, std::move(patterns))))
    return failure();
  collect();
  for (scf::WhileOp loop : loops)
    if (!countUp(loop))
      rotate(loop);
  return success();
}
