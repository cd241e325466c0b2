//===- DeferReductions.cpp - Sums along axes are taken after loops --------===//
//
// Σᵢ sum(tᵢ) = sum(Σᵢ tᵢ)
//
// Lanes that add to values of their own need not wait for each other. That pays
// for sums along an axis of a tile. A sum of all lanes needs as much waiting,
// but it is a single number: carrying a whole tile instead took as long, or
// longer. See docs/decisions/deferred-reductions.md.
//
//===----------------------------------------------------------------------===//
#include "LoopSums.h"
#include "autodiff/Analysis/Costs.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Analysis/Registers.h"
#include "autodiff/Builders/Combiner.h"
#include "autodiff/Builders/Tile.h"
#include "autodiff/Support/Elements.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_DEFERREDUCTIONS
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

namespace {
/// A reduction along an axis, reshaped, that a loop adds to its carried value
/// `carried`.
struct Reduced {
  unsigned carried;
  Value term;
  triton::ReduceOp reduce;
  /// The operations between the reduction and the term.
  SmallVector<Operation *> reshapes;

  Value getTile() { return reduce->getOperand(0); }
};

struct DeferReductions : autodiff::impl::DeferReductionsBase<DeferReductions> {
  void runOnOperation() override;
};
} // namespace

static std::optional<Reduced> match(scf::ForOp loop, unsigned carried,
                                    Value term) {
  Reduced found{carried, term, {}, {}};
  Operation *op = term.getDefiningOp();
  // Sums of all lanes, which become scalars, stay where they are.
  while (triton::isMove(op) && !isa<triton::UnsplatOp>(op) && op->hasOneUse()) {
    found.reshapes.insert(found.reshapes.begin(), op);
    op = op->getOperand(0).getDefiningOp();
  }
  found.reduce = dyn_cast_or_null<triton::ReduceOp>(op);
  bool isSum = found.reduce && op->getBlock() == loop.getBody() &&
               op->hasOneUse() && op->getNumOperands() == 1 &&
               classifyCombiner(found.reduce.getCombineOp()) == Combiner::Sum;
  auto sum = isSum ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                   : RankedTensorType();
  // In half precision, rounding would change.
  if (!sum || !isa<Float32Type, Float64Type>(sum.getElementType()))
    return std::nullopt;
  return found;
}

/// Moves the reduction along the axis behind the loop.
static void defer(scf::ForOp loop, Reduced &found) {
  IRRewriter rewriter(loop->getContext());
  scf::ForOp summing =
      addLoopSum(rewriter, loop, found.getTile(),
                 getElementTypeOrSelf(found.getTile().getType()));
  dropTerm(rewriter, found.term);
  rewriter.setInsertionPointAfter(summing);
  IRMapping map;
  // The loop carries another value now.
  map.map(found.getTile(), summing.getResults().back());
  SmallVector<Operation *> path{found.reduce};
  path.append(found.reshapes);
  for (Operation *op : path)
    rewriter.clone(*op, map);
  Value sum = summing.getResult(found.carried), others = sum;
  // If nothing else is added, the carried value is the one before the loop.
  if (summing.getYieldedValues()[found.carried] ==
      summing.getRegionIterArg(found.carried)) {
    OpOperand &init = summing.getInitArgsMutable()[found.carried];
    others = init.get();
    rewriter.setInsertionPoint(summing);
    init.set(constantOf(rewriter, sum.getLoc(), sum.getType(), 0.0));
    rewriter.setInsertionPointAfter(map.lookup(found.term).getDefiningOp());
  }
  auto total = arith::AddFOp::create(rewriter, found.term.getLoc(), others,
                                     map.lookup(found.term));
  rewriter.replaceAllUsesExcept(sum, total, total);
  for (Operation *op : llvm::reverse(path))
    rewriter.eraseOp(op);
}

void DeferReductions::runOnOperation() {
  triton::FuncOp kernel = getOperation();
  // Products need the registers themselves.
  if (!isBackward(kernel) || ProductCosts::of(kernel).work > 0)
    return;
  // The registers of the warps that the kernel has anyway.
  double registers = countRegisters(kernel);
  double most = registersOfWarpsFor(Target::of(kernel), registers);
  bool changed = true;
  while (changed) {
    changed = false;
    kernel.walk([&](scf::ForOp loop) {
      for (LoopSum &sum : findLoopSums(loop))
        for (Value term : sum.terms) {
          std::optional<Reduced> found = match(loop, sum.carried, term);
          if (!found)
            continue;
          double more = bytesOf(found->getTile().getType()) / 4;
          if (registers + more > most)
            continue;
          registers += more;
          defer(loop, *found);
          changed = true;
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
  }
}
