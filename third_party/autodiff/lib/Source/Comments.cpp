//===- Comments.cpp - What the lines of a derived kernel come from --------===//
#include "Comments.h"

#include "autodiff/Support/RuleLocation.h"
#include "autodiff/Support/Statement.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::autodiff;
using namespace mlir::autodiff::source;

/// Whether `op` computes an adjoint, and not an address or mask.
static bool isOfAdjoints(Operation *op) {
  auto isReal = [](Type type) {
    return isa<FloatType>(getElementTypeOrSelf(type));
  };
  return !op->hasTrait<OpTrait::ConstantLike>() &&
         (op->getNumResults() == 0 ||
          llvm::any_of(op->getResultTypes(), isReal));
}

/// The user's line, as "file:line", for which a rule made `op`; empty if none
/// did.
static std::string statementOf(Operation *op) {
  if (findRule(op->getLoc()).empty() || !isOfAdjoints(op))
    return {};
  return findStatement(op->getLoc());
}

/// The text of a line of the user's; empty if there is no such file.
static std::string sourceOf(StringRef file, unsigned wanted) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer)
    return {};
  for (llvm::line_iterator line(**buffer, /*SkipBlanks=*/false);
       !line.is_at_end(); ++line)
    if (line.line_number() == wanted)
      return line->trim().str();
  return {};
}

/// At most `most` bytes of a text, with dots at the end if it is cut.
static std::string shortened(std::string text, size_t most) {
  static constexpr llvm::StringLiteral kDots = "...";
  if (text.size() <= most)
    return text;
  size_t end = most - kDots.size();
  // Does not cut inside of a UTF-8 character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end) + kDots.str();
}

Comments::Comments(Operation *kernel) {
  kernel->walk([&](Operation *op) {
    std::string statement = statementOf(op);
    if (statement.empty())
      return;
    auto &formulas = statements[statement];
    if (StringRef rule = findRule(op->getLoc()); rule.contains(": "))
      formulas.insert(rule);
  });
}

SmallVector<std::string> Comments::take(Operation *op, size_t columns) {
  auto statement = statements.find(statementOf(op));
  if (statement == statements.end())
    return {};
  auto [file, line] = statement->getKey().rsplit(':');
  std::string place = (llvm::sys::path::filename(file) + ":" + line).str();
  std::string behind = "  (" + place + ")";
  unsigned number = 0;
  std::string source =
      line.getAsInteger(10, number) ? std::string() : sourceOf(file, number);
  SmallVector<std::string> lines;
  lines.push_back(source.empty()
                      ? "# " + place
                      : "# " + shortened(source, columns - behind.size() - 2) +
                            behind);
  for (StringRef formula : statement->getValue()) {
    bool isFirst = lines.size() == 1;
    if (isFirst || lines.back().size() + formula.size() + 2 > columns)
      lines.push_back(shortened(("#     " + formula).str(), columns));
    else
      lines.back() += ("; " + formula).str();
  }
  statements.erase(statement);
  return lines;
}
