//===- Rules.cpp - tadRulesMarkdown ---------------------------------------===//

#include "autodiff-c/Autodiff.h"
#include "autodiff/Rules/RuleTable.h"

const char *tadRulesMarkdown(void) {
  static const std::string text = mlir::autodiff::RuleTable::get().toMarkdown();
  return text.c_str();
}
