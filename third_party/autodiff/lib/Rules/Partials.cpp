//===- Partials.cpp - From partial derivatives to both ways ---------------===//
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/Functions.h"
#include "autodiff/Rules/Infinities.h"
#include "autodiff/Rules/Saturation.h"
#include "autodiff/Rules/Tangents.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Whether the derivative is a multiple of the result, like that of exp.
static bool isMultipleOfResult(Operation *op) {
  std::string name;
  return findFunction(op, &name) && llvm::is_contained({"exp", "exp2"}, name);
}

/// Fails if `operand` of `op`, which is active, is not a float.
static LogicalResult requireFloat(Operation *op, Value operand) {
  Type element = getElementTypeOrSelf(operand.getType());
  if (!isa<IntegerType>(element) || element.isInteger(1))
    return success();
  return op->emitError("derivative lost: an integer operand holds bits of "
                       "a float that depends on a differentiated input; "
                       "compute with floats instead");
}

/// Converts `contribution` to the type of the tangent or adjoint of `value`:
/// operand and result of casts to and from f64 have different ones.
static Tile castFor(Value value, Tile contribution) {
  Type type = Differentiation::typeFor(value.getType());
  return contribution.like(castFloat(contribution.b(), contribution.loc(),
                                     contribution, getElementTypeOrSelf(type)));
}

LogicalResult mlir::autodiff::pullBackPartials(Operation *op, Adjoint &adjoint,
                                               ArrayRef<Partial> partials) {
  Value cotangent = adjoint.get(op->getResult(0));
  if (!cotangent)
    return success();
  Factors factors(adjoint);
  factors.addCotangent(cotangent);
  auto tile = [&](Value primal) {
    Value value = adjoint.primal(primal);
    if (isDifferentiable(value.getType()))
      value = adjoint.widen(value);
    factors.add(value, primal);
    return Tile(adjoint.builder, adjoint.loc(), value);
  };
  SmallVector<Tile> operands = llvm::map_to_vector(op->getOperands(), tile);
  Tile result = tile(op->getResult(0));
  Tile t = result.like(cotangent);
  std::optional<LiveMask> live;
  auto getLive = [&] {
    if (!live)
      live =
          emitLanes(adjoint, adjoint.lanes.of(op->getResult(0)), result.type());
    return *live;
  };
  // Products that sum over these lanes select in the same way.
  if (isMultipleOfResult(op) && !factors.giveFinite(result) &&
      getLive().isExact) {
    result = onlyLive(result, {}, getLive());
    factors.addCotangent(result);
  }
  for (auto [operand, partial] : llvm::zip_equal(op->getOperands(), partials)) {
    if (!adjoint.isActive(operand))
      continue;
    if (failed(requireFloat(op, operand)))
      return failure();
    if (!partial)
      continue;
    Tile contribution =
        besidePadding(partial(t, operands, result), t, op, operands, result);
    if (!factors.giveFinite(contribution))
      contribution = onlyLive(contribution, Value(t), getLive());
    adjoint.add(operand, castFor(operand, contribution));
  }
  return success();
}

LogicalResult mlir::autodiff::pushPartials(Operation *op, Tangents &tangents,
                                           ArrayRef<Partial> partials) {
  auto tile = [&](Value primal) {
    Value value = tangents.primal(primal);
    if (isDifferentiable(value.getType()))
      value = tangents.widen(value);
    return Tile(tangents.builder, tangents.loc(), value);
  };
  SmallVector<Tile> operands = llvm::map_to_vector(op->getOperands(), tile);
  Tile result = tile(op->getResult(0));
  for (auto [operand, partial] : llvm::zip_equal(op->getOperands(), partials)) {
    if (!tangents.isActive(operand))
      continue;
    if (failed(requireFloat(op, operand)))
      return failure();
    Value tangent = tangents.get(operand);
    if (!partial || !tangent)
      continue;
    Tile t = castFor(op->getResult(0), result.like(tangent));
    Tile pushed =
        unlessPadding(partial(t, operands, result), t, op, operands, result);
    if (isMultipleOfResult(op))
      pushed = unlessSaturated(pushed, result, op, tangents);
    tangents.add(op->getResult(0), pushed);
  }
  return success();
}
