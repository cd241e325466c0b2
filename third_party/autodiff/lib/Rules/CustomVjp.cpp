//===- CustomVjp.cpp - Derivatives that the user defines ------------------===//
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tangents.h"

using namespace mlir;
using namespace mlir::autodiff;

/// Applies the pullback's region to the adjoints of the results.
static LogicalResult customVjp(CustomVjpOp op, Adjoint &adjoint) {
  if (llvm::none_of(op.getResults(),
                    [&](Value result) { return adjoint.get(result); }))
    return success();
  OpBuilder &b = adjoint.builder;
  Block &pullback = op.getPullback().front();
  SmallVector<Value> cotangents;
  for (auto [argument, result] :
       llvm::zip_equal(pullback.getArguments(), op.getResults())) {
    Value cotangent = adjoint.get(result);
    cotangents.push_back(cotangent);
    if (!cotangent)
      cotangent = adjoint.constant(result.getType(), 0.0);
    adjoint.primals.map(argument,
                        castFloat(b, adjoint.loc(), cotangent,
                                  getElementTypeOrSelf(argument.getType())));
  }
  for (Operation &inner : pullback.without_terminator())
    adjoint.clone(inner);
  for (auto [number, input] : llvm::enumerate(op.getInputs())) {
    if (!adjoint.isActive(input))
      continue;
    Value gradient =
        adjoint.primal(pullback.getTerminator()->getOperand(number));
    Type element = getElementTypeOrSelf(Adjoint::typeFor(input.getType()));
    Tile given(b, adjoint.loc(),
               castFloat(b, adjoint.loc(), gradient, element));
    // If each lane is computed by itself, the values in other lanes do not
    // matter.
    if (isLanewise(op)) {
      OpOperand &use = op->getOpOperand(op.getValues().size() + number);
      given = onlyLive(
          given, cotangents,
          emitLanes(adjoint, adjoint.lanes.through(use), input.getType()));
    }
    adjoint.add(input, given);
  }
  return success();
}

/// Users define the pullback only. One of the compiler's own (it has no `call`)
/// is the identity of another value, which it is equal to.
static LogicalResult pushCustom(CustomVjpOp op, Tangents &tangents) {
  Block &pullback = op.getPullback().front();
  if (op.getCall() || op.getInputs().size() != 1 ||
      pullback.getTerminator()->getOperand(0) != pullback.getArgument(0))
    return op.emitError()
           << "no forward-mode rule for " << op.getRule()
           << ", of which there is only a pullback: a derivative of one's own "
              "need not be the transpose of a tangent. For tangents and second "
              "derivatives, take the function without it";
  Value result = op->getResult(0);
  if (Value tangent = tangents.get(op.getInputs()[0]))
    tangents.add(result, castFloat(tangents.builder, tangents.loc(), tangent,
                                   getElementTypeOrSelf(
                                       Tangents::typeFor(result.getType()))));
  return success();
}

void mlir::autodiff::addCustomVjpRules(RuleTable &table) {
  table.add<CustomVjpOp>(
      "what the user's function returns; it has no way forward", customVjp,
      pushCustom);
}
