//===- FactorProducts.cpp - Take a common operand out of a sum of products ===//
//
//   Σ A · Bᵢ = A · Σ Bᵢ
//
// Where a chain of products has a short axis (x · A · B of a low rank), the
// gradient of one operand is summed over programs that share the other one. One
// product after the loop does, of the sum of small tiles.
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
/// A product that a loop adds to what it carries, with a common operand.
struct Summand {
  triton::DotOp dot;
  unsigned carried;
  unsigned common, other; // operands
  /// The other one before it was rounded and transposed.
  Value term;
};

struct FactorProducts : autodiff::impl::FactorProductsBase<FactorProducts> {
  void runOnOperation() override;
};
} // namespace

//===----------------------------------------------------------------------===//
// What has a common operand
//===----------------------------------------------------------------------===//

/// Collects the operations that compute `value`, in order, if it is the same in
/// all iterations.
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

/// What an operand of a product is before it is rounded and transposed; null if
/// it is nothing that can be summed. In half precision, a sum might be beyond
/// the range.
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
    // The sum takes registers.
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

/// Lets the loop carry the sum of the terms as well, and drop the product.
static scf::ForOp sumTerms(scf::ForOp loop, const Summand &found) {
  IRRewriter rewriter(loop->getContext());
  scf::ForOp summing =
      addLoopSum(rewriter, loop, found.term, rewriter.getF32Type());
  triton::DotOp dot = found.dot;
  // Of a sum that starts from zero, nothing is left.
  if (matchPattern(dot.getC(), m_AnyZeroFloat()))
    dropTerm(rewriter, dot);
  else
    rewriter.replaceAllUsesWith(dot.getResult(), dot.getC());
  return summing;
}

/// Makes a load read nothing, and be zero, unless `runs`; false if it is
/// something else where it is masked.
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

/// `common` after the loop, if there has been an iteration; else zero.
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

/// The sum of terms of this type, in parts that have it. A sum of numbers that
/// are exact in bfloat16 is not: what is left over by rounding is another part.
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
  // The roundings and transpositions of the term, last one first.
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
