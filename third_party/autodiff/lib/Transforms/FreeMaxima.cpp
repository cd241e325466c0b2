//===- FreeMaxima.cpp - Maxima that the outputs do not depend on ----------===//
#include "FreeMaxima.h"

#include "Maxima.h"
#include "autodiff/Analysis/ScalingDegrees.h"
#include "autodiff/Rules/Mutation.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Whether nothing that `kernel` stores changes when `maximum` alone does, the
/// others staying as they are.
static bool isFree(Value maximum, ArrayRef<Value> others,
                   triton::FuncOp kernel) {
  ScalingDegrees degrees;
  for (Value other : others)
    degrees.seed(other, Degree());
  degrees.seed(maximum, Degree::shifted({1, 0}, seedAxes(maximum)));
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
