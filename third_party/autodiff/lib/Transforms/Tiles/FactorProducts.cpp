//===- FactorProducts.cpp - Take a common operand out of a sum of products ===//
//
// Σ A · Bᵢ = A · Σ Bᵢ
//
// A chain of products may have a short axis (x · A · B of low rank). Then the
// gradient of one operand is summed over programs that share the other operand.
// Instead of a product in each iteration, small tiles are summed, and one
// product follows the loop.
//
//===----------------------------------------------------------------------===//
#include "LoopSums.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/Slice.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_FACTORPRODUCTS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A product with a common operand that a loop adds to a carried value.
struct Summand {
  triton::DotOp dot;
  unsigned carried;
  unsigned common, other; // operands
  /// The other operand before rounding and transposition.
  Value term;
};

struct FactorProducts : autodiff::impl::FactorProductsBase<FactorProducts> {
  void runOnOperation() override;
};
} // namespace

//===----------------------------------------------------------------------===//
// What has a common operand
//===----------------------------------------------------------------------===//

/// Collects the operations that compute `value`, in order; false unless it is
/// the same in all iterations.
static bool collectCommon(scf::ForOp loop, Value value,
                          SetVector<Operation *> &slice) {
  return collectSlice(value, slice, [&](Value each) {
    if (loop.isDefinedOutsideOfLoop(each))
      return Elsewhere::Known;
    Operation *op = each.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody() || op->getNumRegions() != 0)
      return Elsewhere::Never;
    auto load = dyn_cast<triton::LoadOp>(op);
    bool isSame = load ? !load.getIsVolatile() && !mayWrite(loop)
                       : isMemoryEffectFree(op);
    return isSame ? Elsewhere::Computed : Elsewhere::Never;
  });
}

/// An operand of a product before rounding and transposition; null if it cannot
/// be summed. In half precision, a sum might overflow.
static Value findTerm(scf::ForOp loop, Value operand) {
  Operation *op = operand.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody())
    return {};
  Type element = getElementTypeOrSelf(operand.getType());
  if (isa<triton::TransOp>(op) ||
      (isa<arith::TruncFOp>(op) && element.isBF16()))
    return findTerm(loop, op->getOperand(0));
  return element.isF32() || element.isBF16() ? operand : Value();
}

static std::optional<Summand> matchProduct(scf::ForOp loop, unsigned carried,
                                           triton::DotOp dot) {
  for (unsigned common : {0, 1}) {
    unsigned other = 1 - common;
    SetVector<Operation *> slice;
    Value term = findTerm(loop, dot->getOperand(other));
    int64_t most = std::max(elementsOf(dot.getType()),
                            elementsOf(dot->getOperand(common).getType()));
    // The sum needs registers.
    if (term && elementsOf(term.getType()) <= most &&
        collectCommon(loop, dot->getOperand(common), slice))
      return Summand{dot, carried, common, other, term};
  }
  return std::nullopt;
}

static std::optional<Summand> findSummand(scf::ForOp loop) {
  for (LoopSum &sum : findLoopSums(loop)) {
    if (!getElementTypeOrSelf(loop.getResult(sum.carried)).isF32())
      continue;
    for (Value term : sum.terms)
      if (auto dot = term.getDefiningOp<triton::DotOp>())
        if (std::optional<Summand> found = matchProduct(loop, sum.carried, dot))
          return found;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// One product
//===----------------------------------------------------------------------===//

/// Adds the sum of the terms to the loop, and removes the product.
static scf::ForOp sumTerms(scf::ForOp loop, const Summand &found) {
  IRRewriter rewriter(loop->getContext());
  scf::ForOp summing =
      addLoopSum(rewriter, loop, found.term, rewriter.getF32Type());
  triton::DotOp dot = found.dot;
  // A sum that started from zero is gone.
  if (matchPattern(dot.getC(), m_AnyZeroFloat()))
    dropTerm(rewriter, dot);
  else
    rewriter.replaceAllUsesWith(dot.getResult(), dot.getC());
  return summing;
}

/// Masks a load so that it is zero unless `runs`; false if masked lanes have
/// another value.
static bool guard(triton::LoadOp load, Value runs) {
  OpBuilder b(load);
  Location loc = load.getLoc();
  Value mask = splatTo(b, loc, runs, load.getType());
  bool isMasked = bool(load.getMask());
  if (isMasked)
    mask = arith::AndIOp::create(b, loc, mask, load.getMask());
  else
    load.getOtherMutable().assign(zeroOf(b, loc, load.getType()));
  load.getMaskMutable().assign(mask);
  return load.getOther() && matchPattern(load.getOther(), m_AnyZeroFloat());
}

/// Emits `common` behind the loop; zero if there was no iteration.
static Value emitCommon(OpBuilder &b, scf::ForOp loop, Value common,
                        Value runs) {
  SetVector<Operation *> slice;
  collectCommon(loop, common, slice);
  IRMapping map;
  llvm::DenseSet<Value> guarded;
  for (Operation *op : slice) {
    Operation *copy = b.clone(*op, map);
    auto load = dyn_cast<triton::LoadOp>(copy);
    if (load ? guard(load, runs)
             : isa<triton::TransOp>(copy) &&
                   guarded.contains(copy->getOperand(0)))
      guarded.insert(copy->getResult(0));
  }
  Value value = map.lookupOrDefault(common);
  if (guarded.contains(value))
    return value;
  Location loc = value.getLoc();
  return arith::SelectOp::create(b, loc, splatTo(b, loc, runs, value.getType()),
                                 value, zeroOf(b, loc, value.getType()));
}

/// The sum of terms of this type, as parts of this type. A sum of numbers that
/// are exact in bfloat16 is not exact: the rounding error is a second part.
static SmallVector<Value> split(OpBuilder &b, Location loc, Value sum,
                                Type type) {
  Type element = getElementTypeOrSelf(type);
  if (element.isF32())
    return {sum};
  Value high = castFloat(b, loc, sum, element);
  Value rest = arith::SubFOp::create(b, loc, sum,
                                     castFloat(b, loc, high, b.getF32Type()));
  return {high, castFloat(b, loc, rest, element)};
}

static void factor(scf::ForOp loop, const Summand &found) {
  triton::DotOp dot = found.dot;
  Location loc = dot.getLoc();
  scf::ForOp summing = sumTerms(loop, found);
  OpBuilder b(summing->getContext());
  b.setInsertionPointAfter(summing);
  Value runs =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                            summing.getLowerBound(), summing.getUpperBound());
  // The roundings and transpositions of the term, the last one first.
  SmallVector<Operation *> path;
  for (Value value = dot->getOperand(found.other); value != found.term;
       value = path.back()->getOperand(0))
    path.push_back(value.getDefiningOp());
  Value common = dot->getOperand(found.common);
  Value sum = summing.getResult(found.carried), total = sum;
  IRMapping map;
  map.map(common, emitCommon(b, summing, common, runs));
  llvm::SmallPtrSet<Operation *, 2> products;
  for (Value part :
       split(b, loc, summing.getResults().back(), found.term.getType())) {
    map.map(found.term, part);
    for (Operation *op : llvm::reverse(path))
      b.clone(*op, map);
    map.map(dot.getC(), total);
    Operation *product = b.clone(*dot, map);
    products.insert(product);
    total = product->getResult(0);
  }
  sum.replaceUsesWithIf(total, [&](OpOperand &use) {
    return !products.contains(use.getOwner());
  });
  dot.erase();
}

void FactorProducts::runOnOperation() {
  triton::FuncOp kernel = getOperation();
  if (!isBackward(kernel))
    return;
  bool changed = true;
  while (changed) {
    changed = false;
    kernel.walk([&](scf::ForOp loop) {
      std::optional<Summand> found = findSummand(loop);
      if (!found)
        return WalkResult::advance();
      factor(loop, *found);
      changed = true;
      return WalkResult::interrupt();
    });
  }
}
