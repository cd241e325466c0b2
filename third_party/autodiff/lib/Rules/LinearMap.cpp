//===- LinearMap.cpp - Derivatives of linear operations -------------------===//
#include "autodiff/Rules/LinearMap.h"

#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/Tangents.h"

using namespace mlir;
using namespace mlir::autodiff;

static bool areZero(ArrayRef<Value> values) {
  return llvm::none_of(values, [](Value value) { return value; });
}

FailureOr<SmallVector<Value>>
mlir::autodiff::applyItself(Operation *op, ArrayRef<Value> values,
                            Differentiation &in) {
  IRMapping map;
  for (auto [operand, value] : llvm::zip_equal(op->getOperands(), values)) {
    if (!isDifferentiable(operand.getType()))
      map.map(operand, in.primal(operand));
    else
      map.map(operand, value ? value : in.constant(operand.getType(), 0.0));
  }
  Operation *applied = in.builder.clone(*op, map);
  for (Value result : applied->getResults())
    result.setType(Differentiation::typeFor(result.getType()));
  return SmallVector<Value>(applied->getResults());
}

LogicalResult mlir::autodiff::pullBackLinear(Operation *op, Adjoint &adjoint,
                                             const LinearMap &map) {
  SmallVector<Value> cotangents = llvm::map_to_vector(
      op->getResults(), [&](Value result) { return adjoint.get(result); });
  if (areZero(cotangents) || adjoint.findActive(op->getOperands()).none())
    return success();
  FailureOr<SmallVector<Value>> pulled = map.pull(op, cotangents, adjoint);
  if (failed(pulled))
    return failure();
  for (auto [operand, contribution] : llvm::zip(op->getOperands(), *pulled))
    adjoint.add(operand, contribution);
  return success();
}

LogicalResult mlir::autodiff::pushLinear(Operation *op, Tangents &tangents,
                                         const LinearMap &map) {
  SmallVector<Value> given = tangents.get(op->getOperands());
  if (areZero(given))
    return success();
  FailureOr<SmallVector<Value>> pushed = map.push(op, given, tangents);
  if (failed(pushed))
    return failure();
  for (auto [result, contribution] : llvm::zip_equal(op->getResults(), *pushed))
    tangents.add(result, contribution);
  return success();
}
