//===- SplitMasks.cpp - Masks where they let everything through -----------===//
//
// Causal masks, windows and tails only affect blocks at an edge. If a selection
// compares the iteration's number with lanes of a tile, the comparison holds in
// all lanes from some iteration on, or up to one. The loop is split there: one
// loop for the iterations before, one without the comparisons, and one for
// those behind. Together they run the same iterations, in order.
//
// If one loop continues the sums of another, the kernel's author has split it
// already. In inner loops, it does not pay (docs/decisions/split-masks.md).
//
//===----------------------------------------------------------------------===//
#include "ProductSums.h"
#include "autodiff/Analysis/IterationRange.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_SPLITMASKS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A comparison, and an expression that is not negative where it holds.
struct Mask {
  arith::CmpIOp compare;
  IterationRange margin;
};

class Split {
public:
  explicit Split(scf::ForOp loop) : loop(loop), b(loop) {}
  bool find();
  void apply();

private:
  Value constant(int64_t number);
  template <typename OpT> Value make(Value x, Value y) {
    return OpT::create(b, loop.getLoc(), x, y);
  }
  Value widen(Value value) { return widenInteger(b, loop.getLoc(), value); }
  Value getIterations(Value from, int64_t slack);
  Value getStart(Value iteration);
  scf::ForOp append(Value lower, Value upper, ValueRange inits, bool masked);

  scf::ForOp loop;
  OpBuilder b;
  int64_t step = 0;
  SmallVector<Mask> masks;
};
} // namespace

/// Whether a condition selects.
static bool selects(Value condition) {
  return llvm::any_of(condition.getUsers(), [](Operation *user) {
    if (isa<arith::AndIOp>(user) || triton::isRepetition(user))
      return selects(user->getResult(0));
    auto select = dyn_cast<arith::SelectOp>(user);
    return select && isa<RankedTensorType>(select.getType());
  });
}

bool Split::find() {
  std::optional<int64_t> constant = getConstantIntValue(loop.getStep());
  bool hasProducts = !loop.getOps<triton::DotOp>().empty();
  bool isNested = !loop.getOps<LoopLikeOpInterface>().empty() ||
                  loop->getParentOfType<LoopLikeOpInterface>();
  if (!constant || *constant <= 0 || !hasProducts || isNested ||
      loop.getUnsignedCmp() || loop.getInductionVar().getType().isIndex())
    return false;
  step = *constant;
  for (auto compare : loop.getOps<arith::CmpIOp>())
    if (isa<RankedTensorType>(compare.getType()) &&
        selects(compare.getResult()))
      if (auto margin = IterationRange::marginOf(compare, loop))
        if (margin->factor != 0)
          masks.push_back({compare, *margin});
  return !masks.empty();
}

Value Split::constant(int64_t number) {
  return arith::ConstantIntOp::create(b, loop.getLoc(), number, 64);
}

/// How many iterations have induction variables below `from` (+ `slack`).
Value Split::getIterations(Value from, int64_t slack) {
  Value distance = make<arith::SubIOp>(from, widen(loop.getLowerBound()));
  distance = make<arith::AddIOp>(distance, constant(slack));
  distance = make<arith::MaxSIOp>(distance, constant(0));
  Value rounded = make<arith::AddIOp>(distance, constant(step - 1));
  return make<arith::DivSIOp>(rounded, constant(step));
}

/// The induction variable of iteration number `iteration`.
Value Split::getStart(Value iteration) {
  Value start =
      make<arith::AddIOp>(widen(loop.getLowerBound()),
                          make<arith::MulIOp>(iteration, constant(step)));
  Type type = loop.getInductionVar().getType();
  return type.isInteger(64)
             ? start
             : arith::TruncIOp::create(b, loop.getLoc(), type, start);
}

scf::ForOp Split::append(Value lower, Value upper, ValueRange inits,
                         bool masked) {
  IRMapping map;
  auto part = cast<scf::ForOp>(b.clone(*loop, map));
  part.setLowerBound(lower);
  part.setUpperBound(upper);
  part.getInitArgsMutable().assign(inits);
  if (masked)
    return part;
  for (Mask &mask : masks) {
    Operation *compare = map.lookup(mask.compare.getOperation());
    OpBuilder inside(compare);
    auto type = cast<ShapedType>(mask.compare.getType());
    compare->replaceAllUsesWith(arith::ConstantOp::create(
        inside, compare->getLoc(), DenseElementsAttr::get(type, true)));
    compare->erase();
  }
  return part;
}

void Split::apply() {
  // The difference of the comparison's sides increases, or decreases, with the
  // induction variable: it is not negative from some value on, or up to one.
  Value most = getIterations(widen(loop.getUpperBound()), 0);
  Value first, end;
  for (const Mask &mask : masks) {
    Value margin = mask.margin.emitLeast(b, loop.getLoc());
    Value factor = constant(std::abs(mask.margin.factor));
    if (mask.margin.factor > 0) {
      Value from = make<arith::CeilDivSIOp>(
          make<arith::SubIOp>(constant(0), margin), factor);
      Value count = getIterations(from, 0);
      first = first ? make<arith::MaxSIOp>(first, count) : count;
    } else {
      Value last = make<arith::FloorDivSIOp>(margin, factor);
      Value count = getIterations(last, 1);
      end = end ? make<arith::MinSIOp>(end, count) : count;
    }
  }
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
  SmallVector<Value> carried(loop.getInitArgs());
  if (first) {
    first = make<arith::MinSIOp>(first, most);
    Value start = getStart(first);
    carried = append(lower, start, carried, /*masked=*/true).getResults();
    lower = start;
  }
  if (end) {
    end = make<arith::MinSIOp>(end, most);
    end = make<arith::MaxSIOp>(end, first ? first : constant(0));
    Value start = getStart(end);
    carried = append(lower, start, carried, /*masked=*/false).getResults();
    carried = append(start, upper, carried, /*masked=*/true).getResults();
  } else {
    carried = append(lower, upper, carried, /*masked=*/false).getResults();
  }
  loop.replaceAllUsesWith(carried);
  loop.erase();
}

/// The loops that continue sums of products of other loops, and those others.
static SmallVector<scf::ForOp> findDivided(ArrayRef<scf::ForOp> loops) {
  SmallVector<scf::ForOp> found;
  for (scf::ForOp loop : loops)
    for (Value init : loop.getInitArgs())
      if (Operation *before = findProducts(init)) {
        found.push_back(loop);
        before->walk([&](scf::ForOp part) { found.push_back(part); });
      }
  return found;
}

namespace {
struct SplitMasks : autodiff::impl::SplitMasksBase<SplitMasks> {
  void runOnOperation() override {
    if (!isBackward(getOperation()))
      return;
    llvm::SetVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.insert(loop); });
    for (scf::ForOp loop : findDivided(loops.getArrayRef()))
      loops.remove(loop);
    for (scf::ForOp loop : loops)
      if (Split split(loop); split.find())
        split.apply();
  }
};
} // namespace
