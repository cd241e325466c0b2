//===- Map.cpp - Scalar functions applied to every element ----------------===//
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/TileFunction.h"

using namespace mlir;
using namespace mlir::autodiff;

static LogicalResult map(triton::MapElementwiseOp op, Adjoint &adjoint) {
  SmallVector<Value> cotangents = llvm::map_to_vector(
      op.getResult(), [&](Value result) { return adjoint.get(result); });
  if (llvm::none_of(cotangents, [](Value cotangent) { return cotangent; }))
    return success();
  if (op.getPack() != 1)
    return op.emitError("no derivative rule for a map of several elements at "
                        "a time; with pack=1 there is one");
  auto type = cast<RankedTensorType>(op.getSrcs()[0].getType());
  FailureOr<TileFunction> function =
      TileFunction::lift(op.getScalarOp(), type.getShape());
  if (failed(function))
    return failure();
  if (function->findActiveCapture(adjoint))
    return op.emitError("no derivative rule for a map whose function uses a "
                        "differentiated value from outside; pass it as an "
                        "argument");
  llvm::BitVector wanted(op.getSrcs().size());
  for (auto [index, source] : llvm::enumerate(op.getSrcs()))
    wanted[index] = adjoint.isActive(source);
  SmallVector<Value> arguments = llvm::map_to_vector(
      op.getSrcs(), [&](Value source) { return adjoint.primal(source); });
  auto derivatives = function->pullBack(adjoint, arguments, cotangents, wanted);
  if (failed(derivatives))
    return failure();
  Factors factors(adjoint);
  for (Value cotangent : cotangents)
    factors.addCotangent(cotangent);
  for (Value source : op.getSrcs())
    factors.add(adjoint.primal(source), source);
  for (auto [use, derivative] :
       llvm::zip_equal(op->getOpOperands(), *derivatives)) {
    if (derivative && !factors.giveFinite(derivative))
      derivative =
          onlyLive(Tile(adjoint.builder, adjoint.loc(), derivative), cotangents,
                   emitLanes(adjoint, adjoint.lanes.through(use), type));
    adjoint.add(use.get(), derivative);
  }
  return success();
}

void mlir::autodiff::addMapRules(RuleTable &table) {
  table.add<triton::MapElementwiseOp>("the function reversed by its own rules",
                                      map);
}
