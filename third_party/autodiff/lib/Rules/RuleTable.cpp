//===- RuleTable.cpp - The derivative of every operation ------------------===//
#include "autodiff/Rules/RuleTable.h"

#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace mlir;
using namespace mlir::autodiff;

const RuleTable &RuleTable::get() {
  static const RuleTable table = [] {
    RuleTable table;
    addElementwiseRules(table);
    addLibraryRules(table);
    addShapeRules(table);
    addReduceRules(table);
    addScanRules(table);
    addDotRules(table);
    addMemoryRules(table);
    addIfRules(table);
    addForRules(table);
    return table;
  }();
  return table;
}

const Rule *RuleTable::lookup(Operation *op) const {
  auto it = rules.find(op->getName().getStringRef());
  return it == rules.end() ? nullptr : &it->second;
}

void RuleTable::insert(llvm::StringRef operation, Rule rule) {
  bool isNew = rules.try_emplace(operation, std::move(rule)).second;
  assert(isNew && "one rule per operation");
  (void)isNew;
}

std::string RuleTable::toMarkdown() const {
  std::map<llvm::StringRef, const Rule *> sorted;
  for (const auto &entry : rules)
    sorted.emplace(entry.getKey(), &entry.getValue());
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "| operation | pullback |\n| --- | --- |\n";
  for (const auto &[name, rule] : sorted)
    os << "| `" << name << "` | " << rule->formula << " |\n";
  return text;
}

bool mlir::autodiff::isPiecewiseConstant(Operation *op) {
  const Rule *rule = RuleTable::get().lookup(op);
  return rule && rule->piecewiseConstant;
}
