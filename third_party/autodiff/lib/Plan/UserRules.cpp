//===- UserRules.cpp - Rules that come with a request ---------------------===//
//
// Python traces a rule as a kernel without arguments: assembly named
// "autodiff.cotangent 0", "autodiff.operand 1", "autodiff.result 0" stands for
// what the rule gets, a call of "autodiff.yield" takes what it returns. Here
// these become arguments and results of a function.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Plan/Plan.h"
#include "autodiff/Transforms/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <map>

using namespace mlir;
using namespace mlir::autodiff;

/// Orders the placeholders of a rule's function: cotangents, operands, results.
static std::optional<std::pair<unsigned, unsigned>>
getPosition(triton::ElementwiseInlineAsmOp op) {
  StringRef text = op.getAsmString().trim();
  text.consume_front("//");
  text = text.trim();
  auto [kind, index] = text.split(' ');
  unsigned number;
  if (index.getAsInteger(10, number))
    return std::nullopt;
  const StringRef kinds[] = {"autodiff.cotangent", "autodiff.operand",
                             "autodiff.result"};
  for (unsigned i = 0; i < 3; ++i)
    if (kind == kinds[i])
      return std::make_pair(i, number);
  return std::nullopt;
}

/// Makes arguments of the placeholders and a return of the yield.
static LogicalResult makeSignature(triton::FuncOp function) {
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
    return function.emitError("malformed rule");
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
  triton::ReturnOp::create(builder, exit->getLoc(), yield.getOperands());
  function.setType(FunctionType::get(function.getContext(), arguments,
                                     yield.getOperandTypes()));
  exit->erase();
  yield->erase();
  return success();
}

LogicalResult mlir::autodiff::importRule(const UserRule &rule,
                                         ModuleOp module) {
  OwningOpRef<ModuleOp> source =
      parseSourceString<ModuleOp>(rule.ttir, ParserConfig(module.getContext()));
  if (!source)
    return failure();
  PassManager pm(module.getContext());
  pm.addPass(createInlinerPass());
  pm.addPass(createSymbolDCEPass());
  if (failed(pm.run(*source)))
    return failure();
  triton::FuncOp function = getPrimal(*source);
  if (!function || failed(makeSignature(function)))
    return failure();

  Builder builder(module.getContext());
  function->remove();
  function.setSymName("autodiff.rule");
  function->setAttr(kRoleAttr, builder.getStringAttr("rule"));
  function->setAttr(kRuleAttr, builder.getStringAttr(rule.name));
  function->setAttr(
      rule.symbol.empty() ? kRuleAsmAttr : kRuleSymbolAttr,
      builder.getStringAttr(rule.symbol.empty() ? rule.assembly : rule.symbol));
  SymbolTable(module).insert(function); // under a name that is free
  return success();
}
