//===- UserRules.cpp - Rules that come with a request ---------------------===//
//
// Python traces a rule as a kernel without arguments (Placeholders.h). It
// becomes a function of the cotangents, operands and results.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Plan/Plan.h"
#include "autodiff/Transforms/Placeholders.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::autodiff;

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
  if (!function || failed(resolvePlaceholders(function)))
    return failure();

  Builder builder(module.getContext());
  function->remove();
  function.setSymName("autodiff.rule");
  function->setAttr(kRoleAttr, builder.getStringAttr("rule"));
  function->setAttr(kRuleAttr, builder.getStringAttr(rule.name));
  function->setAttr(
      rule.symbol.empty() ? kRuleAsmAttr : kRuleSymbolAttr,
      builder.getStringAttr(rule.symbol.empty() ? rule.assembly : rule.symbol));
  if (rule.forward)
    function->setAttr(kRuleForwardAttr, builder.getUnitAttr());
  if (rule.exact)
    function->setAttr(kRuleExactAttr, builder.getUnitAttr());
  SymbolTable(module).insert(function); // under a name that is free
  return success();
}
