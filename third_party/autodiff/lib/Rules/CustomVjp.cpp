//===- CustomVjp.cpp - Derivatives that the user defines ------------------===//
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/RuleTable.h"

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

void mlir::autodiff::addCustomVjpRules(RuleTable &table) {
  // Users define the pullback only.
  table.add<CustomVjpOp>("what the user's function returns", customVjp,
                         /*push=*/nullptr);
}
