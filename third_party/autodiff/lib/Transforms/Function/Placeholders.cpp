//===- Placeholders.cpp - Functions from kernels without arguments --------===//
#include "autodiff/Transforms/Placeholders.h"

#include <map>

using namespace mlir;
using namespace mlir::autodiff;

/// The order of the placeholders of a rule's function: cotangents or tangents,
/// operands, results.
static std::optional<std::pair<unsigned, unsigned>>
getPosition(triton::ElementwiseInlineAsmOp op) {
  StringRef text = op.getAsmString().trim();
  text.consume_front("//");
  text = text.trim();
  auto [kind, index] = text.split(' ');
  unsigned number;
  if (index.getAsInteger(10, number))
    return std::nullopt;
  if (kind == "autodiff.tangent")
    kind = "autodiff.cotangent";
  const StringRef kinds[] = {"autodiff.cotangent", "autodiff.operand",
                             "autodiff.result"};
  for (unsigned i = 0; i < 3; ++i)
    if (kind == kinds[i])
      return std::make_pair(i, number);
  return std::nullopt;
}

LogicalResult mlir::autodiff::resolvePlaceholders(triton::FuncOp function) {
  std::map<std::pair<unsigned, unsigned>, Operation *> placeholders;
  triton::CallOp yield;
  function.walk([&](Operation *op) {
    if (auto assembly = dyn_cast<triton::ElementwiseInlineAsmOp>(op))
      if (auto position = getPosition(assembly))
        placeholders[*position] = op;
    if (auto call = dyn_cast<triton::CallOp>(op))
      if (call.getCallee() == "autodiff.yield")
        yield = call;
  });
  Block &entry = function.getBody().front();
  if (!yield || yield->getBlock() != &entry)
    return function.emitError(
        "nothing says what it returns (a call of \"autodiff.yield\")");
  SmallVector<Type> arguments;
  for (auto [position, op] : placeholders) {
    Value argument =
        entry.addArgument(op->getResult(0).getType(), op->getLoc());
    arguments.push_back(argument.getType());
    op->replaceAllUsesWith(ValueRange{argument});
    op->erase();
  }
  Operation *exit = entry.getTerminator();
  OpBuilder builder(exit);
  triton::ReturnOp::create(builder, yield.getLoc(), yield.getOperands());
  function.setType(FunctionType::get(function.getContext(), arguments,
                                     yield.getOperandTypes()));
  exit->erase();
  yield->erase();
  return success();
}
