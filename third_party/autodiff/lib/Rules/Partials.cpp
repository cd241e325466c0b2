//===- Partials.cpp - From partial derivatives to a pullback --------------===//
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/Functions.h"
#include "autodiff/Rules/Infinities.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Whether the derivative is a multiple of the result.
static bool isMultipleOfResult(Operation *op) {
  std::string name;
  return findFunction(op, &name) && llvm::is_contained({"exp", "exp2"}, name);
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
  // Products that sum over the lanes that are not live select the same.
  if (isMultipleOfResult(op) && !factors.giveFinite(result) &&
      getLive().isExact) {
    result = onlyLive(result, {}, getLive());
    factors.addCotangent(result);
  }
  for (auto [operand, partial] : llvm::zip_equal(op->getOperands(), partials)) {
    if (!adjoint.isActive(operand))
      continue;
    Type element = getElementTypeOrSelf(operand.getType());
    if (isa<IntegerType>(element) && !element.isInteger(1))
      return op->emitError("derivative lost: an integer operand holds bits of "
                           "a float that depends on a differentiated input; "
                           "compute with floats instead");
    if (!partial)
      continue;
    Tile contribution =
        besidePadding(partial(t, operands, result), t, op, operands, result);
    if (!factors.giveFinite(contribution))
      contribution = onlyLive(contribution, Value(t), getLive());
    // Operand and result may differ in their type: casts to and from f64.
    adjoint.add(operand, castFloat(adjoint.builder, adjoint.loc(), contribution,
                                   getElementTypeOrSelf(
                                       Adjoint::typeFor(operand.getType()))));
  }
  return success();
}
