//===- Names.cpp - What values are called in Python -----------------------===//
#include "Names.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::autodiff::source;

/// What Python, Triton or the printed module use themselves.
static constexpr llvm::StringLiteral kReserved[] = {
    "and",      "as",       "assert",    "async", "await",  "break",  "class",
    "continue", "def",      "del",       "elif",  "else",   "except", "finally",
    "for",      "from",     "global",    "if",    "import", "in",     "is",
    "lambda",   "nonlocal", "not",       "or",    "pass",   "raise",  "return",
    "try",      "while",    "with",      "yield", "None",   "True",   "False",
    "tl",       "triton",   "libdevice", "range", "float",  "int",    "bool",
    "min",      "max",      "sum",       "abs",   "print",  "len",    "self"};

Names::Names() {
  for (llvm::StringLiteral name : kReserved)
    taken.insert(name);
}

std::string Names::unique(StringRef wish) {
  std::string name = wish.str();
  for (unsigned number = 1; !taken.insert(name).second; ++number)
    name = (wish + "_" + llvm::Twine(number)).str();
  return name;
}

std::string Names::give(Value value, StringRef otherwise) {
  std::string own = nameOf(value.getLoc());
  return unique(own.empty() ? otherwise : own);
}

static bool isIdentifier(StringRef name) {
  auto isInside = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, isInside);
}

std::string mlir::autodiff::source::nameOf(Location loc) {
  // Of inlined code, the call's statement is the user's.
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    std::string outer = nameOf(call.getCaller());
    return outer.empty() ? nameOf(call.getCallee()) : outer;
  }
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      if (std::string name = nameOf(part); !name.empty())
        return name;
    return "";
  }
  auto named = dyn_cast<NameLoc>(loc);
  if (!named)
    return "";
  StringRef name = named.getName().strref();
  return isIdentifier(name) ? name.str() : nameOf(named.getChildLoc());
}
