//===- ResidualIds.cpp - Residuals by their numbers -----------------------===//
#include "autodiff/Analysis/ResidualIds.h"

using namespace mlir;
using namespace mlir::autodiff;

ResidualOp mlir::autodiff::findResidual(triton::FuncOp kernel, unsigned id) {
  ResidualOp found;
  kernel.walk([&](ResidualOp op) {
    if (op.getId() == id)
      found = op;
  });
  return found;
}

ResidualOp mlir::autodiff::findName(Value value) {
  for (Operation *user : value.getUsers())
    if (auto residual = dyn_cast<ResidualOp>(user))
      return residual;
  return {};
}

unsigned mlir::autodiff::getNextResidualId(triton::FuncOp kernel) {
  unsigned next = 0;
  kernel.walk([&](ResidualOp op) { next = std::max(next, op.getId() + 1); });
  return next;
}
