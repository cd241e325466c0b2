//===- PickMaxima.cpp - Running maxima as sums of what is picked ----------===//
//
// A running maximum of a loop, m' = max(m, rᵢ), is one of the rᵢ, or the
// initial value. Its derivative goes there, and a backward that follows the
// loop needs each m to find it. Instead, let w be the iteration that attains
// the maximum, the first of equal ones. Then m = Σ (i = w ? rᵢ : 0) is a plain
// sum, whose iterations do not depend on each other, and only w is kept.
//
// The user's kernel is extended to find w. The copy that is differentiated
// computes the sum in a loop of its own.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/ResidualIds.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Support/Mutation.h"
#include "autodiff/Transforms/Cleanup.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_PICKMAXIMA
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A running maximum, or minimum, of a loop.
struct Extremum {
  static std::optional<Extremum> match(Value value);

  BlockArgument getCurrent() { return loop.getRegionIterArg(index); }
  /// The value rᵢ of this iteration.
  Value getOffer() {
    return update->getOperand(update->getOperand(0) == getCurrent());
  }
  /// Whether a loop that knows w can sum the value of iteration w: it carries
  /// nothing but counters, and does not write.
  bool canBeSummed();
  Value isTaken(OpBuilder &b);
  Value addPlace(RewriterBase &rewriter);
  Value addSum(OpBuilder &b, Value place);

  scf::ForOp loop;
  unsigned index = 0;
  Operation *update = nullptr; // max(m, rᵢ)
};

struct PickMaxima : autodiff::impl::PickMaximaBase<PickMaxima> {
  void transform() override;
  bool pick(ResidualOp residual, triton::FuncOp primal, triton::FuncOp kernel);
};
} // namespace

std::optional<Extremum> Extremum::match(Value value) {
  auto result = dyn_cast<OpResult>(value);
  auto loop = result ? dyn_cast<scf::ForOp>(result.getOwner()) : scf::ForOp();
  if (!loop)
    return std::nullopt;
  Extremum found{loop, result.getResultNumber(), nullptr};
  found.update = loop.getYieldedValues()[found.index].getDefiningOp();
  if (!isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
                       arith::MinNumFOp>(found.update) ||
      found.update->getBlock() != loop.getBody() ||
      llvm::count(found.update->getOperands(), found.getCurrent()) != 1)
    return std::nullopt;
  return found;
}

bool Extremum::canBeSummed() {
  if (mayWrite(loop) || !getCurrent().hasOneUse() || !update->hasOneUse())
    return false;
  llvm::SetVector<Value> needed;
  needed.insert(getOffer());
  for (unsigned next = 0; next < needed.size(); ++next) {
    auto carried = dyn_cast<BlockArgument>(needed[next]);
    if (carried && carried.getOwner() == loop.getBody() &&
        carried != loop.getInductionVar()) {
      if (isFloat(carried.getType()))
        return false;
      needed.insert(loop.getTiedLoopYieldedValue(carried)->get());
    }
    Operation *source = needed[next].getDefiningOp();
    if (!source || !loop->isProperAncestor(source))
      continue;
    source->walk([&](Operation *op) {
      needed.insert(op->operand_begin(), op->operand_end());
    });
  }
  return true;
}

/// Whether rᵢ replaces m. NaN always does, or never.
Value Extremum::isTaken(OpBuilder &b) {
  using arith::CmpFPredicate;
  bool isMaximum = isa<arith::MaximumFOp, arith::MaxNumFOp>(update);
  bool takesNaN = isa<arith::MaximumFOp, arith::MinimumFOp>(update);
  Value current = getCurrent(), offer = getOffer();
  auto test = [&](CmpFPredicate predicate, Value other) -> Value {
    return arith::CmpFOp::create(b, update->getLoc(), predicate, offer, other);
  };
  if (takesNaN)
    return arith::OrIOp::create(
        b, update->getLoc(),
        test(isMaximum ? CmpFPredicate::OGT : CmpFPredicate::OLT, current),
        test(CmpFPredicate::UNO, offer));
  return arith::AndIOp::create(
      b, update->getLoc(),
      test(isMaximum ? CmpFPredicate::UGT : CmpFPredicate::ULT, current),
      test(CmpFPredicate::ORD, offer));
}

/// Adds w as a carried value; its initial value is the end of the loop, which
/// means that no iteration was taken.
Value Extremum::addPlace(RewriterBase &rewriter) {
  Type type = getCurrent().getType();
  auto takePlace = [&](OpBuilder &b, Location loc,
                       ArrayRef<BlockArgument> places) {
    Value place = places.front();
    Value here = splatTo(b, loc, loop.getInductionVar(), place.getType());
    return SmallVector<Value>{
        arith::SelectOp::create(b, loc, isTaken(b), here, place)};
  };
  rewriter.setInsertionPoint(loop);
  Value end = splatTo(rewriter, loop.getLoc(), loop.getUpperBound(),
                      withElementType(type, loop.getUpperBound().getType()));
  FailureOr<LoopLikeOpInterface> placing = loop.replaceWithAdditionalYields(
      rewriter, end, /*replaceInitOperandUsesInLoop=*/false, takePlace);
  assert(succeeded(placing) && "scf.for takes further yields");
  loop = cast<scf::ForOp>(placing->getOperation());
  return loop.getResults().back();
}

/// The sum of the values that are taken, in a loop of its own.
Value Extremum::addSum(OpBuilder &b, Value place) {
  Location loc = loop.getLoc();
  auto isPlace = [&](OpBuilder &at, Value number) {
    return arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq,
                                 splatTo(at, loc, number, place.getType()),
                                 place);
  };
  Tile start(b, loc, loop.getInitArgs()[index]);
  Value init =
      where(isPlace(b, loop.getUpperBound()), start, start.constant(0));
  IRMapping map;
  auto summing = cast<scf::ForOp>(b.clone(*loop, map));
  summing.getInitArgsMutable()[index].set(init);
  OpBuilder inside(summing.getBody()->getTerminator());
  Tile offer(inside, loc, map.lookupOrDefault(getOffer()));
  Tile picked = where(isPlace(inside, summing.getInductionVar()), offer,
                      offer.constant(0));
  if (mutation::isMade("pick-maxima:every iteration"))
    picked = offer;
  Tile sum = offer.like(summing.getRegionIterArg(index)) + picked;
  Operation *yield = summing.getBody()->getTerminator();
  yield->setOperand(index, sum);
  // It need not find the place again, which is its last carried value.
  yield->setOperand(yield->getNumOperands() - 1,
                    summing.getRegionIterArgs().back());
  return summing.getResult(index);
}

/// Replaces a residual by the sum, if it is an extremum that is not constant.
bool PickMaxima::pick(ResidualOp residual, triton::FuncOp primal,
                      triton::FuncOp kernel) {
  ResidualOp there = findResidual(primal, residual.getId());
  if (residual.getConstant() || !there)
    return false;
  auto found = Extremum::match(residual.getValue());
  auto original = Extremum::match(there.getValue());
  if (!found || !original ||
      original->update->getName() != found->update->getName() ||
      !found->canBeSummed())
    return false;
  unsigned id = std::max(getNextResidualId(primal), getNextResidualId(kernel));
  IRRewriter rewriter(&getContext());
  auto addPlace = [&](Extremum &to) {
    Value place = to.addPlace(rewriter);
    rewriter.setInsertionPointAfter(to.loop);
    return ResidualOp::create(rewriter, to.update->getLoc(), place, id);
  };
  addPlace(*original).setPinned(true);
  Value sum = found->addSum(rewriter, addPlace(*found));
  residual->moveAfter(sum.getDefiningOp());
  residual.getValueMutable().set(sum);
  return true;
}

void PickMaxima::transform() {
  triton::FuncOp primal = getPrimal(getOperation());
  triton::FuncOp kernel = getDifferentiated(getOperation());
  if (kernel == primal)
    return;
  bool changed = false;
  for (ResidualOp residual :
       llvm::to_vector(kernel.getBody().front().getOps<ResidualOp>()))
    changed |= pick(residual, primal, kernel);
  if (!changed)
    return;
  OpPassManager clean(triton::FuncOp::getOperationName());
  addCleanup(clean);
  if (failed(runPipeline(clean, primal)) || failed(runPipeline(clean, kernel)))
    signalPassFailure();
}
