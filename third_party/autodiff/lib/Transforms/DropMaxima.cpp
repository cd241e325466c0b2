//===- DropMaxima.cpp - Maxima that the outputs do not depend on ----------===//
//
// A softmax subtracts a maximum for the sake of range; its result is the same
// whatever is subtracted. Where the scaling degrees prove that, the maximum is
// a constant to the derivative.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/ScalingDegrees.h"
#include "autodiff/Rules/Combiner.h"
#include "autodiff/Rules/Mutation.h"
#include "autodiff/Transforms/Passes.h"

namespace mlir::autodiff {
#define GEN_PASS_DEF_DROPMAXIMA
#include "autodiff/Transforms/Passes.h.inc"
} // namespace mlir::autodiff

using namespace mlir;
using namespace mlir::autodiff;

/// Whether `value` is a maximum, of a tile or of what a loop has seen.
static bool isMaximum(Value value) {
  Operation *source = value.getDefiningOp();
  if (auto reduce = dyn_cast_or_null<triton::ReduceOp>(source))
    return reduce.getSrcs().size() == 1 &&
           classifyCombiner(reduce.getCombineOp()) == Combiner::Max;
  auto loop = dyn_cast_or_null<scf::ForOp>(source);
  if (!loop)
    return false;
  Value next = loop.getYieldedValues()[cast<OpResult>(value).getResultNumber()];
  Operation *update = next.getDefiningOp();
  return update && isa<arith::MaximumFOp, arith::MaxNumFOp>(update);
}

/// The residuals for which the proof is worth trying.
static SmallVector<ResidualOp> findCandidates(triton::FuncOp kernel) {
  SmallVector<ResidualOp> candidates;
  kernel.walk([&](ResidualOp residual) {
    if (isDifferentiable(residual.getType()) && isMaximum(residual.getValue()))
      candidates.push_back(residual);
  });
  return candidates;
}

/// Whether nothing that `kernel` stores changes when `maximum` alone does, the
/// others staying as they are.
static bool isFree(ResidualOp maximum, ArrayRef<ResidualOp> others,
                   triton::FuncOp kernel) {
  ScalingDegrees degrees;
  for (ResidualOp other : others)
    degrees.seed(other.getResult(), Degree());
  SmallVector<unsigned> axes;
  if (auto tensor = dyn_cast<RankedTensorType>(maximum.getType()))
    axes = llvm::to_vector(llvm::seq<unsigned>(0, tensor.getRank()));
  degrees.seed(maximum.getResult(), Degree::shifted({1, 0}, axes));
  return degrees.hasInvariantEffects(kernel);
}

namespace {
struct DropMaxima : autodiff::impl::DropMaximaBase<DropMaxima> {
  void runOnOperation() override {
    triton::FuncOp kernel = getDifferentiated(getOperation());
    if (!kernel)
      return;
    // All that remain are free together: each one's proof holds the others
    // fixed, whatever they in turn depend on.
    SmallVector<ResidualOp> maxima = findCandidates(kernel);
    for (bool changed = true; changed;) {
      SmallVector<ResidualOp> free =
          llvm::filter_to_vector(maxima, [&](ResidualOp op) {
            return isFree(op, maxima, kernel) ||
                   mutation::isMade("maxima:dropped without a proof");
          });
      changed = free.size() != maxima.size();
      maxima = std::move(free);
    }
    for (ResidualOp maximum : maxima)
      maximum.setConstant(true);
  }
};
} // namespace
