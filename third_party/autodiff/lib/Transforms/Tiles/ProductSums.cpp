//===- ProductSums.cpp - Loops that sum products --------------------------===//
#include "ProductSums.h"

#include "autodiff/Support/Elements.h"

using namespace mlir;
using namespace mlir::autodiff;

triton::DotOp mlir::autodiff::findSummand(scf::ForOp loop, unsigned index) {
  Value sum = loop.getRegionIterArg(index);
  Value next = loop.getYieldedValues()[index];
  if (!sum.hasOneUse() || !next.hasOneUse())
    return {};
  if (auto dot = next.getDefiningOp<triton::DotOp>())
    return dot.getC() == sum ? dot : triton::DotOp();
  auto inner = next.getDefiningOp<scf::ForOp>();
  if (!inner)
    return {};
  unsigned place = cast<OpResult>(next).getResultNumber();
  return inner.getInitArgs()[place] == sum ? findSummand(inner, place)
                                           : triton::DotOp();
}

Operation *mlir::autodiff::findProducts(Value sum) {
  while (auto trans = sum.getDefiningOp<triton::TransOp>())
    sum = trans.getSrc();
  Operation *source = sum.getDefiningOp();
  if (!isa_and_nonnull<scf::ForOp, scf::IfOp>(source) ||
      !isFloat(sum.getType()))
    return nullptr;
  WalkResult walk =
      source->walk([](triton::DotOp) { return WalkResult::interrupt(); });
  return walk.wasInterrupted() ? source : nullptr;
}
