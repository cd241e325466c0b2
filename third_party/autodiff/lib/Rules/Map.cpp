//===- Map.cpp - Scalar functions applied to every element ----------------===//
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/TileFunction.h"

using namespace mlir;
using namespace mlir::autodiff;

/// The function that is applied to the tiles.
static FailureOr<TileFunction> lift(triton::MapElementwiseOp op,
                                    const Differentiation &in) {
  if (op.getPack() != 1)
    return op.emitError("no derivative rule for a map of several elements at "
                        "a time; with pack=1 there is one");
  auto type = cast<RankedTensorType>(op.getSrcs()[0].getType());
  FailureOr<TileFunction> function =
      TileFunction::lift(op.getScalarOp(), type.getShape());
  if (succeeded(function) && function->findActiveCapture(in))
    return op.emitError("no derivative rule for a map whose function uses a "
                        "differentiated value from outside; pass it as an "
                        "argument");
  return function;
}

static LogicalResult pullBack(triton::MapElementwiseOp op, Adjoint &adjoint) {
  SmallVector<Value> cotangents = llvm::map_to_vector(
      op.getResult(), [&](Value result) { return adjoint.get(result); });
  if (llvm::none_of(cotangents, [](Value cotangent) { return cotangent; }))
    return success();
  FailureOr<TileFunction> function = lift(op, adjoint);
  if (failed(function))
    return failure();
  llvm::BitVector wanted(op.getSrcs().size());
  for (auto [index, source] : llvm::enumerate(op.getSrcs()))
    wanted[index] = adjoint.isActive(source);
  SmallVector<Value> arguments = llvm::map_to_vector(
      op.getSrcs(), [&](Value source) { return adjoint.primal(source); });
  auto derivatives = function->pullBack(adjoint, arguments, cotangents, wanted,
                                        emitLanesOfResults(adjoint, op));
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
      derivative = onlyLive(
          Tile(adjoint.builder, adjoint.loc(), derivative), cotangents,
          emitLanes(adjoint, adjoint.lanes.through(use), use.get().getType()));
    adjoint.add(use.get(), derivative);
  }
  return success();
}

static LogicalResult push(triton::MapElementwiseOp op, Tangents &tangents) {
  FailureOr<TileFunction> function = lift(op, tangents);
  if (failed(function))
    return failure();
  SmallVector<Value> arguments = llvm::map_to_vector(
      op.getSrcs(), [&](Value source) { return tangents.primal(source); });
  auto pairs = function->push(tangents, arguments, tangents.get(op.getSrcs()));
  if (failed(pairs))
    return failure();
  for (auto [result, tangent] :
       llvm::zip_equal(op.getResult(), pairs->tangents))
    tangents.add(result, tangent);
  return success();
}

void mlir::autodiff::addMapRules(RuleTable &table) {
  table.add<triton::MapElementwiseOp>("the function reversed by its own rules",
                                      pullBack, push);
}
