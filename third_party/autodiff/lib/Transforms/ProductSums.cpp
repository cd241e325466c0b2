//===- ProductSums.cpp - Loops that sum products --------------------------===//
#include "ProductSums.h"

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
