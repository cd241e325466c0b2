//===- FreeMaxima.cpp - Maxima that the outputs do not depend on ----------===//
#include "FreeMaxima.h"

#include "autodiff/Analysis/ScalingDegrees.h"
#include "autodiff/Rules/Combiner.h"
#include "autodiff/Rules/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::isMaximum(Value value) {
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

/// Whether nothing that `kernel` stores changes when `maximum` alone does, the
/// others staying as they are.
static bool isFree(Value maximum, ArrayRef<Value> others,
                   triton::FuncOp kernel) {
  ScalingDegrees degrees;
  for (Value other : others)
    degrees.seed(other, Degree());
  SmallVector<unsigned> axes;
  if (auto tensor = dyn_cast<RankedTensorType>(maximum.getType()))
    axes = llvm::to_vector(llvm::seq<unsigned>(0, tensor.getRank()));
  degrees.seed(maximum, Degree::shifted({1, 0}, axes));
  return degrees.hasInvariantEffects(kernel);
}

SmallVector<Value> mlir::autodiff::findFreeMaxima(triton::FuncOp kernel,
                                                  SmallVector<Value> maxima) {
  // All that remain are free together: each one's proof holds the others
  // fixed, whatever they in turn depend on.
  for (bool changed = true; changed;) {
    SmallVector<Value> free = llvm::filter_to_vector(maxima, [&](Value value) {
      return isFree(value, maxima, kernel) ||
             mutation::isMade("maxima:dropped without a proof");
    });
    changed = free.size() != maxima.size();
    maxima = std::move(free);
  }
  return maxima;
}
