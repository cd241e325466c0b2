//===- RecordMemory.cpp - Mark what only this run can know ----------------===//
//
// A backward cannot compute again what a kernel loads from memory that it
// changes, nor what an atomic operation returns, nor what comes of a loop that
// waits for other programs. Such a value is pushed where it appears, with a
// number that counts the executions of its block: a counter that the loops and
// branches around it carry. Decisions (Decisions.h) in loops and branches are
// pushed, too; others are residuals.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Decisions.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/MemoryFlow.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_RECORDMEMORY
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// Carries a counter from the outermost block of a kernel to an inner block,
/// and back.
class CounterThreading {
public:
  explicit CounterThreading(triton::FuncOp kernel)
      : kernel(kernel), rewriter(kernel.getContext()) {}

  /// How often the block of `anchor` has run before.
  Value countExecutions(Operation *anchor);

private:
  /// Carries the count `before` through `block`; returns the count after it.
  Value thread(Operation *anchor, Block &block, Value before);
  Value threadFor(Operation *anchor, scf::ForOp loop, Value before);
  Value threadWhile(Operation *anchor, scf::WhileOp loop, Value before);
  Value threadIf(Operation *anchor, scf::IfOp branch, Value before);

  triton::FuncOp kernel;
  IRRewriter rewriter;
  Value count; // in the anchor's block
};

struct RecordMemory : autodiff::impl::RecordMemoryBase<RecordMemory> {
  void runOnOperation() override;
};
} // namespace

Value CounterThreading::threadFor(Operation *anchor, scf::ForOp loop,
                                  Value before) {
  auto yieldCount = [&](OpBuilder &, Location,
                        ArrayRef<BlockArgument> arguments) {
    return SmallVector<Value>{
        thread(anchor, *loop.getBody(), arguments.front())};
  };
  rewriter.setInsertionPoint(loop);
  FailureOr<LoopLikeOpInterface> threaded = loop.replaceWithAdditionalYields(
      rewriter, before, /*replaceInitOperandUsesInLoop=*/false, yieldCount);
  assert(succeeded(threaded) && "scf.for takes further yields");
  return threaded->getOperation()->getResults().back();
}

/// A normalized loop does all its work in the body.
Value CounterThreading::threadWhile(Operation *anchor, scf::WhileOp loop,
                                    Value before) {
  SmallVector<Value> inits(loop.getInits());
  inits.push_back(before);
  SmallVector<Type> types(loop.getResultTypes());
  types.push_back(before.getType());
  rewriter.setInsertionPoint(loop);
  auto threaded = scf::WhileOp::create(rewriter, loop.getLoc(), types, inits);
  threaded->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  threaded.getBefore().takeBody(loop.getBefore());
  threaded.getAfter().takeBody(loop.getAfter());
  Value passed =
      threaded.getBeforeBody()->addArgument(before.getType(), loop.getLoc());
  threaded.getConditionOp().getArgsMutable().append(passed);
  Value start =
      threaded.getAfterBody()->addArgument(before.getType(), loop.getLoc());
  Value after = thread(anchor, *threaded.getAfterBody(), start);
  threaded.getYieldOp().getResultsMutable().append(after);
  rewriter.replaceOp(loop, threaded.getResults().drop_back());
  return threaded.getResults().back();
}

Value CounterThreading::threadIf(Operation *anchor, scf::IfOp branch,
                                 Value before) {
  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(before.getType());
  rewriter.setInsertionPoint(branch);
  auto threaded =
      scf::IfOp::create(rewriter, branch.getLoc(), types, branch.getCondition(),
                        /*withElseRegion=*/true);
  for (auto [from, to] :
       llvm::zip_equal(branch->getRegions(), threaded->getRegions())) {
    if (from.empty()) {
      rewriter.setInsertionPointToEnd(&to.front());
      scf::YieldOp::create(rewriter, branch.getLoc(), before);
      continue;
    }
    to.takeBody(from);
    Value after = to.isAncestor(anchor->getParentRegion())
                      ? thread(anchor, to.front(), before)
                      : before;
    auto yield = cast<scf::YieldOp>(to.front().getTerminator());
    yield.getResultsMutable().append(after);
  }
  rewriter.replaceOp(branch, threaded.getResults().drop_back());
  return threaded.getResults().back();
}

Value CounterThreading::thread(Operation *anchor, Block &block, Value before) {
  Operation *op = block.findAncestorOpInBlock(*anchor);
  if (op == anchor) {
    count = before;
    rewriter.setInsertionPoint(block.getTerminator());
    Value one = arith::ConstantIntOp::create(rewriter, anchor->getLoc(), 1, 32);
    return arith::AddIOp::create(rewriter, anchor->getLoc(), before, one);
  }
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return threadFor(anchor, loop, before);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return threadWhile(anchor, loop, before);
  return threadIf(anchor, cast<scf::IfOp>(op), before);
}

Value CounterThreading::countExecutions(Operation *anchor) {
  rewriter.setInsertionPointToStart(&kernel.getBody().front());
  Value zero = arith::ConstantIntOp::create(rewriter, anchor->getLoc(), 0, 32);
  if (!anchor->getParentOfType<LoopLikeOpInterface>())
    return zero;
  thread(anchor, kernel.getBody().front(), zero);
  return count;
}

void RecordMemory::runOnOperation() {
  triton::FuncOp kernel = getOperation();
  if (kernel->hasAttr(kRoleAttr) || !kernel.getBody().hasOneBlock())
    return;
  MemoryFlow memory(kernel);
  llvm::SetVector<Value> decisions = findDecisions(kernel);
  auto isRecorded = [&](OpResult result) {
    Operation *op = result.getOwner();
    bool isDecision =
        decisions.contains(result) && op->getParentOp() != kernel &&
        !mutation::isMade("record-memory:decisions are made again");
    return isDecision || (!result.use_empty() && !memory.isRepeatable(op));
  };
  // For each block, its first such operation stands for the block, since blocks
  // may be replaced.
  llvm::MapVector<Block *, SmallVector<Operation *>> recorded;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (llvm::any_of(op->getResults(), isRecorded))
      recorded[op->getBlock()].push_back(op);
    return memory.getSynchronization().isSpin(op) ? WalkResult::skip()
                                                  : WalkResult::advance();
  });
  OpBuilder builder(kernel.getContext());
  unsigned tape = 0;
  for (auto &[block, ops] : recorded) {
    Value execution = CounterThreading(kernel).countExecutions(ops.front());
    for (Operation *op : ops) {
      builder.setInsertionPointAfter(op);
      for (Value result : llvm::make_filter_range(op->getResults(), isRecorded))
        PushOp::create(builder, op->getLoc(), result, execution, tape++,
                       ExprAttr());
    }
  }
}
