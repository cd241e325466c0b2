//===- Position.cpp - Where in the user's file something is ---------------===//

#include "autodiff/Support/Position.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

FileLineColLoc autodiff::findPosition(Location loc) {
  if (auto file = dyn_cast<FileLineColLoc>(loc))
    return file;
  if (auto name = dyn_cast<NameLoc>(loc))
    return findPosition(name.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return findPosition(call.getCallee());
  if (auto opaque = dyn_cast<OpaqueLoc>(loc))
    return findPosition(opaque.getFallbackLocation());
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location inner : fused.getLocations())
      if (FileLineColLoc position = findPosition(inner))
        return position;
  return {};
}

/// The innermost position around `loc` that is not in Triton's own library.
static FileLineColLoc findUserPosition(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return findUserPosition(name.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    FileLineColLoc callee = findUserPosition(call.getCallee());
    if (!callee ||
        callee.getFilename().getValue().contains("/triton/language/"))
      return findUserPosition(call.getCaller());
    return callee;
  }
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location inner : fused.getLocations())
      if (FileLineColLoc position = findUserPosition(inner))
        return position;
  return autodiff::findPosition(loc);
}

static bool isIdentifier(StringRef name) {
  auto isInside = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, isInside);
}

StringRef autodiff::findVariable(Location loc) {
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    StringRef caller = findVariable(call.getCaller());
    return caller.empty() ? findVariable(call.getCallee()) : caller;
  }
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location inner : fused.getLocations())
      if (StringRef name = findVariable(inner); !name.empty())
        return name;
  auto named = dyn_cast<NameLoc>(loc);
  if (!named)
    return {};
  StringRef name = named.getName();
  return isIdentifier(name) ? name : findVariable(named.getChildLoc());
}

Location autodiff::withVariable(Location loc, const llvm::Twine &name) {
  return NameLoc::get(StringAttr::get(loc.getContext(), name), loc);
}

Location autodiff::withoutVariable(Location loc) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return withoutVariable(named.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return CallSiteLoc::get(withoutVariable(call.getCallee()),
                            withoutVariable(call.getCaller()));
  if (auto fused = dyn_cast<FusedLoc>(loc))
    return FusedLoc::get(
        loc.getContext(),
        llvm::map_to_vector(fused.getLocations(), withoutVariable),
        fused.getMetadata());
  return loc;
}

bool autodiff::isOfAdjoint(Location loc) {
  return findVariable(loc).starts_with(kAdjointPrefix);
}

Location autodiff::ofAdjoint(Location loc, llvm::StringRef variable) {
  if (variable.empty() || isOfAdjoint(loc))
    return loc;
  return withVariable(loc, kAdjointPrefix + variable);
}

std::string autodiff::spellPosition(Location loc) {
  FileLineColLoc position = findUserPosition(loc);
  if (!position)
    return {};
  return llvm::formatv("{0}:{1}:{2}", position.getFilename().getValue(),
                       position.getLine(), position.getColumn());
}
