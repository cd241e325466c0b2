//===- BlockMaxima.cpp - Exponentials relative to a block's own -----------===//
#include "BlockMaxima.h"

#include "Maxima.h"
#include "autodiff/Analysis/ScalingDegrees.h"
#include "autodiff/Rules/Mutation.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Whether what an iteration hands on, and what it writes, is the same for any
/// `own` maximum, if it is for the `running` one.
static bool isFree(Value own, Value running, scf::ForOp loop) {
  ScalingDegrees degrees;
  for (Value carried : loop.getRegionIterArgs())
    degrees.seed(carried, Degree());
  degrees.seed(running, Degree());
  degrees.seed(own, Degree::shifted({1, 0}, seedAxes(own)));
  return (llvm::all_of(loop.getYieldedValues(),
                       [&](Value next) { return degrees.isInvariant(next); }) &&
          degrees.hasInvariantEffects(loop)) ||
         mutation::isMade("block-maxima:without a proof");
}

void mlir::autodiff::useRunningMaxima(scf::ForOp loop) {
  for (unsigned index = 0; index < loop.getNumResults(); ++index) {
    Operation *running = getCarriedMaximum(loop, index);
    Value current = loop.getRegionIterArg(index);
    if (!running || !llvm::is_contained(running->getOperands(), current))
      continue;
    Value next = running->getResult(0);
    Value own = running->getOperand(running->getOperand(0) == current);
    Operation *source = own.getDefiningOp();
    if (!source || source->getBlock() != loop.getBody() || own.hasOneUse() ||
        !isFree(own, next, loop))
      continue;
    running->moveAfter(source);
    own.replaceAllUsesExcept(next, running);
  }
}
