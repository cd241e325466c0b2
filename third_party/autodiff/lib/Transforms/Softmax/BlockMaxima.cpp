//===- BlockMaxima.cpp - Exponentials relative to a block's own -----------===//
#include "BlockMaxima.h"

#include "Maxima.h"
#include "RelativeValues.h"
#include "autodiff/Support/Mutation.h"

using namespace mlir;
using namespace mlir::autodiff;

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
        (!nothingDependsOn(loop, own, next) &&
         !mutation::isMade("block-maxima:without a proof")))
      continue;
    running->moveAfter(source);
    own.replaceAllUsesExcept(next, running);
  }
}
