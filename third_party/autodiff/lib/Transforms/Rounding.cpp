//===- Rounding.cpp - Values with an error of their own -------------------===//
#include "Rounding.h"

#include "triton/Dialect/Triton/IR/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

bool mlir::autodiff::isComputed(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<triton::LoadOp>(op))
    return false;
  if (matchPattern(op, m_Constant()))
    return true;
  if (isa<arith::SelectOp>(op))
    return isComputed(op->getOperand(1)) && isComputed(op->getOperand(2));
  if (isa<arith::ExtFOp, triton::FpToFpOp, triton::SplatOp, triton::BroadcastOp,
          triton::ExpandDimsOp, triton::ReshapeOp, triton::TransOp>(op))
    return isComputed(op->getOperand(0));
  return true;
}
