//===- RuleLocation.cpp - Which rule made an operation --------------------===//
#include "autodiff/Support/RuleLocation.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

Location autodiff::ofRule(Location loc, const llvm::Twine &formula) {
  MLIRContext *context = loc.getContext();
  return FusedLoc::get(context, {loc}, StringAttr::get(context, formula));
}

StringRef autodiff::findRule(Location loc) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return findRule(named.getChildLoc());
  auto fused = dyn_cast<FusedLoc>(loc);
  if (!fused)
    return {};
  if (auto formula = dyn_cast_or_null<StringAttr>(fused.getMetadata()))
    return formula;
  for (Location inner : fused.getLocations())
    if (StringRef formula = findRule(inner); !formula.empty())
      return formula;
  return {};
}
