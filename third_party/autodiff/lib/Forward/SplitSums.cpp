//===- SplitSums.cpp - Sums of products that do not wait for each other ---===//
//
// A tangent of a product of tiles is the sum of two products. If a loop adds up
// both in one tile, the second product waits for the first, and so does all
// that follows. In two tiles each waits for the next iteration only.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Forward/Passes.h"

#include "autodiff/Support/Elements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SPLITSUMS
#include "autodiff/Forward/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
struct SplitSums : autodiff::impl::SplitSumsBase<SplitSums> {
  void runOnOperation() override;
};

/// A carried tile to which a loop adds two products, one after the other.
struct Sum {
  unsigned number; // of the loop's results
  triton::DotOp first, second;
};
} // namespace

static std::optional<Sum> findSum(scf::ForOp loop, unsigned number) {
  BlockArgument carried = loop.getRegionIterArg(number);
  auto second = loop.getYieldedValues()[number].getDefiningOp<triton::DotOp>();
  auto first = second ? second.getC().getDefiningOp<triton::DotOp>() : nullptr;
  // A sum that is scaled each time would be so twice.
  if (!first || !isFloat(second.getType()) || !first->hasOneUse() ||
      !second->hasOneUse() || first.getC() != carried || !carried.hasOneUse() ||
      first->getBlock() != loop.getBody())
    return std::nullopt;
  return Sum{number, first, second};
}

/// Carries a tile of its own for the second product.
static scf::ForOp split(scf::ForOp loop, const Sum &sum, IRRewriter &b) {
  triton::DotOp first = sum.first, second = sum.second;
  Location loc = second.getLoc();
  b.setInsertionPoint(loop);
  Value none =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(second.getType()));
  auto both = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      b, none, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument> more) {
        second.getCMutable().assign(more.front());
        return SmallVector<Value>{second};
      }));
  both.getBody()->getTerminator()->setOperand(sum.number, first);
  b.setInsertionPointAfter(both);
  Value result = both.getResult(sum.number);
  auto total = arith::AddFOp::create(b, loc, result, both.getResults().back());
  b.replaceAllUsesExcept(result, total, total);
  return both;
}

void SplitSums::runOnOperation() {
  IRRewriter b(&getContext());
  SmallVector<scf::ForOp> loops;
  getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops)
    for (unsigned number : llvm::seq(loop.getNumResults())) {
      if (std::optional<Sum> sum = findSum(loop, number))
        loop = split(loop, *sum, b);
    }
}
