//===- CustomVjp.cpp - Derivatives that the user defines ------------------===//
#include "autodiff/Builders/Tile.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Rules/DeadLanes.h"
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Tangents.h"
#include "autodiff/Support/Mutation.h"

using namespace mlir;
using namespace mlir::autodiff;

/// `derivative`, which has none itself unless its author says that it is exact.
/// It depends on `inputs`, or if these are not there, on anything.
static Value onceUnlessExact(OpBuilder &b, CustomVjpOp op, Value derivative,
                             ValueRange inputs = {}) {
  bool isUsers = op.getCall().has_value();
  return isUsers && !op.getExact() && !mutation::isMade("rules:all exact")
             ? OnceOp::create(b, op.getLoc(), derivative, inputs).getResult()
             : derivative;
}

/// Maps the arguments of a region that are values of `op`; returns those in
/// front of them, `count` derivatives.
template <typename State>
static Block::BlockArgListType mapValues(CustomVjpOp op, Block &block,
                                         unsigned count, State &state) {
  auto arguments = block.getArguments();
  for (auto [argument, value] :
       llvm::zip(arguments.drop_front(count), op.getValues()))
    state.primals.map(argument, state.primal(value));
  return arguments.take_front(count);
}

/// Applies the pullback's region to the adjoints of the results.
static LogicalResult customVjp(CustomVjpOp op, Adjoint &adjoint) {
  if (llvm::none_of(op.getResults(),
                    [&](Value result) { return adjoint.get(result); }))
    return success();
  OpBuilder &b = adjoint.builder;
  Block &pullback = op.getPullback().front();
  SmallVector<Value> cotangents;
  auto given = mapValues(op, pullback, op.getNumResults(), adjoint);
  for (auto [argument, result] : llvm::zip_equal(given, op.getResults())) {
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
    Value gradient = onceUnlessExact(
        b, op, adjoint.primal(pullback.getTerminator()->getOperand(number)));
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

/// Applies the pushforward's region to the tangents of the inputs.
static void pushThrough(CustomVjpOp op, Tangents &tangents) {
  OpBuilder &b = tangents.builder;
  Block &block = op.getPushforward().front();
  // What the rule reads of the values moves as the results do.
  SmallVector<std::pair<Value, Value>> cloned;
  for (auto [value, result] :
       llvm::zip_equal(op.getValues(), op.getResults())) {
    cloned.push_back({value, tangents.primal(value)});
    if (!mutation::isMade("rules:values that do not move"))
      tangents.primals.map(value, tangents.primal(result));
  }
  auto given = mapValues(op, block, op.getInputs().size(), tangents);
  for (auto [argument, input] : llvm::zip_equal(given, op.getInputs()))
    tangents.primals.map(argument,
                         castFloat(b, tangents.loc(), tangents.getOrZero(input),
                                   getElementTypeOrSelf(argument.getType())));
  for (Operation &inner : block.without_terminator())
    tangents.clone(inner);
  SmallVector<Value> moving;
  for (Value input : op.getInputs()) {
    moving.push_back(tangents.primal(input));
    if (Value tangent = tangents.get(input))
      moving.push_back(tangent);
  }
  for (auto [yielded, result] :
       llvm::zip_equal(block.getTerminator()->getOperands(), op.getResults())) {
    Type element = getElementTypeOrSelf(Tangents::typeFor(result.getType()));
    Value tangent = onceUnlessExact(b, op, tangents.primal(yielded), moving);
    tangents.add(result, castFloat(b, tangents.loc(), tangent, element));
  }
  for (auto [value, before] : llvm::reverse(cloned))
    tangents.primals.map(value, before);
}

/// A pullback of the compiler's own (it has no `call`) is the identity of
/// another value, which it is equal to.
static LogicalResult pushCustom(CustomVjpOp op, Tangents &tangents) {
  if (!op.getPushforward().empty()) {
    pushThrough(op, tangents);
    return success();
  }
  Block &pullback = op.getPullback().front();
  if (op.getCall() || op.getInputs().size() != 1 ||
      pullback.getTerminator()->getOperand(0) != pullback.getArgument(0))
    return op.emitError()
           << "no forward-mode rule for " << op.getRule()
           << ", of which there is only a pullback: a derivative of one's own "
              "need not be the transpose of a tangent. For tangents and second "
              "derivatives, give it a jvp, too, or say exact=True if its vjp "
              "is the derivative of the function";
  Value result = op->getResult(0);
  if (Value tangent = tangents.get(op.getInputs()[0]))
    tangents.add(result, castFloat(tangents.builder, tangents.loc(), tangent,
                                   getElementTypeOrSelf(
                                       Tangents::typeFor(result.getType()))));
  return success();
}

/// Differentiates a first derivative that is not known to be an exact one.
template <typename State> static LogicalResult refuse(OnceOp op, State &) {
  return op.emitError(
      "a gradient of a function with a derivative of its own is differentiated "
      "again here: its author has given only the first one. If that is exact, "
      "say exact=True where it is given to a function or an operation of a "
      "kernel (docs/python.md); otherwise take the function without it");
}

void mlir::autodiff::addCustomVjpRules(RuleTable &table) {
  table.add<CustomVjpOp>("what the user's rules return", customVjp, pushCustom);
  table.add<OnceOp>("an error: there is no second derivative", refuse<Adjoint>,
                    refuse<Tangents>);
}
