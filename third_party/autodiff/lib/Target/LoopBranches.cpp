//===- LoopBranches.cpp - Branches that multiply as loops -----------------===//
#include "autodiff/Builders/Tile.h"
#include "autodiff/Target/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_LOOPBRANCHES
#include "autodiff/Target/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

static bool multiplies(scf::IfOp branch) {
  return branch->walk([](triton::DotOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// A loop around `block` that runs once if `runs` is true; otherwise its
/// results are `otherwise`.
static scf::ForOp loopOver(OpBuilder &b, Block *block, Value runs,
                           ValueRange otherwise) {
  Location loc = runs.getLoc();
  Value zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  Value one = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
  Value trips = arith::ExtUIOp::create(b, loc, b.getI32Type(), runs);
  auto loop = scf::ForOp::create(b, loc, zero, trips, one, otherwise);
  // There is nothing to be pipelined.
  loop->setAttr("tt.num_stages", b.getI32IntegerAttr(1));
  loop.getBody()->getOperations().splice(loop.getBody()->begin(),
                                         block->getOperations());
  return loop;
}

/// Whether a side of a branch computes nothing.
static bool isTrivial(Block *block) {
  return llvm::hasSingleElement(block->getOperations());
}

static void rewrite(scf::IfOp branch) {
  OpBuilder b(branch);
  Location loc = branch.getLoc();
  Value condition = branch.getCondition();
  Block *then = branch.thenBlock(), *otherwise = branch.elseBlock();
  SmallVector<Value> values(otherwise->getTerminator()->getOperands());
  if (!isTrivial(otherwise)) {
    Value isFalse = arith::XOrIOp::create(
        b, loc, condition,
        arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
    SmallVector<Value> zeros;
    for (Type type : branch.getResultTypes())
      zeros.push_back(zeroOf(b, loc, type));
    values = loopOver(b, otherwise, isFalse, zeros).getResults();
  }
  branch.replaceAllUsesWith(loopOver(b, then, condition, values));
  branch.erase();
}

namespace {
struct LoopBranches : autodiff::impl::LoopBranchesBase<LoopBranches> {
  void runOnOperation() override {
    SmallVector<scf::IfOp> branches;
    getOperation().walk([&](scf::IfOp branch) {
      bool hasPointers = llvm::any_of(branch.getResultTypes(), [](Type type) {
        return isa<triton::PointerType>(getElementTypeOrSelf(type));
      });
      if (branch.getNumResults() > 0 && !hasPointers && multiplies(branch))
        branches.push_back(branch);
    });
    llvm::for_each(branches, rewrite);
  }
};
} // namespace
