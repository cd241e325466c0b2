//===- CheckText.cpp - Text that MLIR's parser does not survive -----------===//
#include "autodiff/Support/CheckText.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

/// Deeper nesting would overflow the stack.
static constexpr unsigned kMaxDepth = 500;

/// The position where nesting becomes too deep; npos if nowhere. Strings and
/// comments do not count.
static size_t findDeepNesting(StringRef text) {
  unsigned depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    StringRef rest = text.drop_front(at);
    if (rest.starts_with("//") || text[at] == '"') {
      char end = text[at] == '"' ? '"' : '\n';
      for (++at; at < text.size() && text[at] != end; ++at)
        if (end == '"' && text[at] == '\\')
          ++at;
    } else if (rest.starts_with("->")) {
      ++at;
    } else if (StringRef("([{<").contains(text[at])) {
      if (++depth > kMaxDepth)
        return at;
    } else if (StringRef(")]}>").contains(text[at]) && depth) {
      --depth;
    }
  }
  return StringRef::npos;
}

LogicalResult autodiff::checkText(StringRef text, StringRef fileName,
                                  MLIRContext *context) {
  auto refuse = [&](size_t at, StringRef reason) {
    StringRef before = text.take_front(at);
    size_t column = at - (before.rfind('\n') + 1) + 1;
    return emitError(FileLineColLoc::get(context, fileName,
                                         before.count('\n') + 1, column))
           << reason;
  };
  SmallVector<StringRef> match;
  if (llvm::Regex("array[[:space:]]*<[[:space:]]*index").match(text, &match))
    return refuse(match[0].data() - text.data(),
                  "dense arrays of index values are not supported");
  if (size_t at = findDeepNesting(text); at != StringRef::npos)
    return refuse(at, "more than 500 brackets inside of each other");
  return success();
}
