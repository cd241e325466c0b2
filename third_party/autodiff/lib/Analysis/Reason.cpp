//===- Reason.cpp - Why something is not so -------------------------------===//
#include "autodiff/Analysis/Reason.h"

#include "autodiff/Support/Position.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::autodiff;

bool mlir::autodiff::wantsReasons(MLIRContext *context) {
  return context->getRemarkEngine() != nullptr;
}

Reason Reason::all(ArrayRef<Reason> reasons) {
  SmallVector<StringRef> texts;
  for (const Reason &reason : reasons)
    if (reason && !llvm::is_contained(texts, reason.getText()))
      texts.push_back(reason.getText());
  return texts.empty() ? Reason() : Reason(llvm::join(texts, "; "));
}

std::string reasons::spell(MLIRContext *, Location loc) {
  std::string position = spellPosition(loc);
  if (position.empty())
    return "an unknown line";
  // Without directory and column.
  StringRef line = StringRef(position).rsplit(':').first;
  return llvm::sys::path::filename(line).str();
}

std::string reasons::spell(MLIRContext *, double number) {
  std::string text = llvm::formatv("{0:F1}", number);
  return StringRef(text).ends_with(".0") ? text.substr(0, text.size() - 2)
                                         : text;
}

std::string reasons::spell(MLIRContext *context, Operation *op) {
  return spell(context, op->getLoc());
}

std::string reasons::spell(MLIRContext *, ExprAttr number) {
  std::string text;
  llvm::raw_string_ostream(text) << number;
  // #autodiff.expr<arg0 * 4>
  StringRef inner = StringRef(text).split('<').second;
  inner.consume_back(">");
  // A long address says no more than that it is one.
  constexpr size_t kLongest = 80;
  if (inner.size() > kLongest)
    return (inner.take_front(kLongest) + " …").str();
  return inner.str();
}

std::string reasons::spell(MLIRContext *context, const ScalarExpr &number) {
  return spell(context, number.get(context));
}
