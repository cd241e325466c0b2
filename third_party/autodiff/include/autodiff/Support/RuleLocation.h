//===- RuleLocation.h - Which rule made an operation ------------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_RULELOCATION_H
#define AUTODIFF_SUPPORT_RULELOCATION_H

#include "mlir/IR/Location.h"

namespace mlir::autodiff {

/// `loc` as that of what a rule makes of the operation there; the formula is
/// what readers are told of the rule. To debuggers it is the same place.
Location ofRule(Location loc, const llvm::Twine &formula);

/// The formula of the rule that made what is at `loc`; empty if none did.
llvm::StringRef findRule(Location loc);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_RULELOCATION_H
