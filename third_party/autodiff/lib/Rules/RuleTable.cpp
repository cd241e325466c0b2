//===- RuleTable.cpp - The derivative of every operation ------------------===//
#include "autodiff/Rules/RuleTable.h"
#include "autodiff/Rules/Functions.h"
#include "autodiff/Support/UserName.h"

#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace mlir;
using namespace mlir::autodiff;

const RuleTable &RuleTable::get() {
  static const RuleTable table = [] {
    RuleTable table;
    addElementwiseRules(table);
    addSelectRules(table);
    addFunctionRules(table);
    addCustomVjpRules(table);
    addShapeRules(table);
    addReduceRules(table);
    addScanRules(table);
    addGatherRules(table);
    addMapRules(table);
    addDotRules(table);
    addMemoryRules(table);
    addIfRules(table);
    addForRules(table);
    addWhileRules(table);
    return table;
  }();
  return table;
}

const Rule *RuleTable::lookup(Operation *op) const {
  std::string function;
  if (findFunction(op, &function))
    return &functions.find(function)->second;
  auto it = rules.find(op->getName().getStringRef());
  return it == rules.end() ? nullptr : &it->second;
}

/// How an error describes `op`.
static std::string describe(Operation *op) {
  std::string name = spellForUser(op);
  if (auto call = dyn_cast<triton::ExternElementwiseOp>(op))
    return "the library function '" + call.getSymbol().str() + "' (" + name +
           ")";
  if (auto assembly = dyn_cast<triton::ElementwiseInlineAsmOp>(op))
    return "the inline assembly \"" + assembly.getAsmString().trim().str() +
           "\" (" + name + ")";
  return name;
}

/// What a user can do about an operation without a rule.
static llvm::StringRef suggest(Operation *op) {
  if (isa<triton::ExternElementwiseOp, triton::ElementwiseInlineAsmOp>(op))
    return "give its rule with register_vjp (docs/python.md)";
  return "express it with supported operations (docs/rules.md)";
}

LogicalResult Rule::pullBack(Operation *op, Adjoint &adjoint) const {
  if (auto *partialsOf = std::get_if<PartialsOf>(&derivative))
    return pullBackPartials(op, adjoint, (*partialsOf)(op));
  if (auto *map = std::get_if<LinearMap>(&derivative))
    return pullBackLinear(op, adjoint, *map);
  if (auto *ways = std::get_if<Ways>(&derivative))
    return ways->pullBack(op, adjoint);
  return success();
}

LogicalResult Rule::push(Operation *op, Tangents &tangents) const {
  if (auto *partialsOf = std::get_if<PartialsOf>(&derivative))
    return pushPartials(op, tangents, (*partialsOf)(op));
  if (auto *map = std::get_if<LinearMap>(&derivative))
    return pushLinear(op, tangents, *map);
  if (auto *ways = std::get_if<Ways>(&derivative))
    return ways->push(op, tangents);
  return success();
}

const Rule *RuleTable::require(Operation *op) const {
  const Rule *rule = lookup(op);
  if (!rule)
    op->emitError() << "no derivative rule for " << describe(op)
                    << ", which lies between a differentiated input and an "
                       "output; "
                    << suggest(op)
                    << ", or detach the tensors that it depends on";
  return rule;
}

void RuleTable::insert(llvm::StringRef operation, Rule rule) {
  bool isNew = rules.try_emplace(operation, std::move(rule)).second;
  assert(isNew && "one rule per operation");
  (void)isNew;
}

void RuleTable::insertFunction(llvm::StringRef name, Rule rule) {
  functions.try_emplace(name, std::move(rule));
}

static std::map<llvm::StringRef, const Rule *>
sorted(const llvm::StringMap<Rule> &rules) {
  std::map<llvm::StringRef, const Rule *> result;
  for (const auto &entry : rules)
    result.emplace(entry.getKey(), &entry.getValue());
  return result;
}

/// How a rule states its derivative, for the documentation.
static llvm::StringRef describeKind(const Rule &rule) {
  if (std::holds_alternative<Rule::PartialsOf>(rule.derivative))
    return "partials";
  if (std::holds_alternative<LinearMap>(rule.derivative))
    return "linear map";
  if (std::holds_alternative<Rule::Ways>(rule.derivative))
    return "both ways";
  return "constant";
}

std::string RuleTable::toMarkdown() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "| operation | pullback | stated as |\n| --- | --- | --- |\n";
  for (const auto &[name, rule] : sorted(rules))
    os << "| `" << name << "` | " << rule->formula << " | "
       << describeKind(*rule) << " |\n";
  os << "\n## Functions\n\n"
        "By plain name, whatever computes the function: an operation, a call "
        "of a device\nlibrary (`__nv_tanhf`, `__nv_fast_tanhf`, "
        "`__ocml_tanh_f64`), any rounding mode, or an\ninstruction of inline "
        "assembly.\n\n"
        "| function | operations | pullback | stated as |\n"
        "| --- | --- | --- | --- |\n";
  for (const auto &[name, rule] : sorted(functions)) {
    os << "| `" << name << "` |";
    for (const auto &[operation, function] : getFunctionOperations())
      if (function == name)
        os << " `" << operation << "`";
    os << " | " << rule->formula << " | " << describeKind(*rule) << " |\n";
  }
  return text;
}
