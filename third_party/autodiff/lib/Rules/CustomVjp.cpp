//===- CustomVjp.cpp - Derivatives that the user defines ------------------===//
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tile.h"

using namespace mlir;
using namespace mlir::autodiff;

/// The pullback's region, on the adjoints of the results.
static LogicalResult customVjp(CustomVjpOp op, Adjoint &adjoint) {
  if (llvm::none_of(op.getResults(),
                    [&](Value result) { return adjoint.get(result); }))
    return success();
  OpBuilder &b = adjoint.builder;
  Block &pullback = op.getPullback().front();
  for (auto [argument, result] :
       llvm::zip_equal(pullback.getArguments(), op.getResults())) {
    Value cotangent = adjoint.get(result);
    if (!cotangent)
      cotangent = adjoint.constant(result.getType(), 0.0);
    adjoint.primals.map(argument,
                        castFloat(b, adjoint.loc(), cotangent,
                                  getElementTypeOrSelf(argument.getType())));
  }
  for (Operation &inner : pullback.without_terminator())
    adjoint.clone(inner);
  for (auto [input, gradient] :
       llvm::zip_equal(op.getInputs(), pullback.getTerminator()->getOperands()))
    adjoint.add(input, castFloat(b, adjoint.loc(), adjoint.primal(gradient),
                                 getElementTypeOrSelf(
                                     Adjoint::typeFor(input.getType()))));
  return success();
}

void mlir::autodiff::addCustomVjpRules(RuleTable &table) {
  table.add<CustomVjpOp>("what the user's function returns", customVjp);
}
