//===- LoopSums.cpp - What loops add up -----------------------------------===//
#include "LoopSums.h"

#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Collects the terms of `value`; returns how often `sum` is among them.
static int collectTerms(Value value, Value sum, SmallVectorImpl<Value> &terms) {
  if (value == sum)
    return 1;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != sum.getParentBlock() || !value.hasOneUse())
    return 0;
  if (auto add = dyn_cast<arith::AddFOp>(op))
    return collectTerms(add.getLhs(), sum, terms) +
           collectTerms(add.getRhs(), sum, terms);
  terms.push_back(value);
  auto dot = dyn_cast<triton::DotOp>(op);
  return dot ? collectTerms(dot.getC(), sum, terms) : 0;
}

SmallVector<LoopSum> mlir::autodiff::findLoopSums(scf::ForOp loop) {
  SmallVector<LoopSum> sums;
  for (auto [index, sum] : llvm::enumerate(loop.getRegionIterArgs())) {
    LoopSum found{static_cast<unsigned>(index), {}};
    if (isFloat(sum.getType()) && sum.hasOneUse() &&
        collectTerms(loop.getYieldedValues()[index], sum, found.terms) == 1)
      sums.push_back(std::move(found));
  }
  return sums;
}

void mlir::autodiff::dropTerm(RewriterBase &rewriter, Value term) {
  OpOperand &use = *term.getUses().begin();
  if (auto add = dyn_cast<arith::AddFOp>(use.getOwner()))
    return rewriter.replaceOp(add, add->getOperand(1 - use.getOperandNumber()));
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(use.getOwner());
  use.set(constantOf(rewriter, term.getLoc(), term.getType(), 0.0));
}

scf::ForOp mlir::autodiff::addLoopSum(RewriterBase &rewriter, scf::ForOp loop,
                                      Value term, Type element) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop);
  Value none = constantOf(rewriter, term.getLoc(),
                          withElementType(term.getType(), element), 0.0);
  auto addTerm = [&](OpBuilder &b, Location loc, ArrayRef<BlockArgument> sums) {
    Value next = castFloat(b, loc, term, element);
    if (!mutation::isMade("loop-sums:last term"))
      next = arith::AddFOp::create(b, loc, sums.front(), next);
    return SmallVector<Value>{next};
  };
  FailureOr<LoopLikeOpInterface> summing = loop.replaceWithAdditionalYields(
      rewriter, none, /*replaceInitOperandUsesInLoop=*/false, addTerm);
  assert(succeeded(summing) && "scf.for takes further yields");
  return cast<scf::ForOp>(summing->getOperation());
}
