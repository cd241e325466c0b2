//===- Costs.cpp - What moving and computing values costs -----------------===//
#include "Costs.h"

using namespace mlir;
using namespace mlir::autodiff;

double mlir::autodiff::bytesOf(Type type) {
  double elements = 1;
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    elements = tensor.getNumElements();
  Type element = getElementTypeOrSelf(type);
  double bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
  return elements * std::max(bits, 8.0) / 8;
}

double mlir::autodiff::bytesOfProduct(triton::DotOp dot) {
  // A Hopper or Ampere GPU does about 150 multiply-adds per byte.
  auto lhs = cast<RankedTensorType>(dot.getA().getType());
  return cast<RankedTensorType>(dot.getType()).getNumElements() *
         lhs.getShape().back() / 150.0;
}
