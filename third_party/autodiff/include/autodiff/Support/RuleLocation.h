//===- RuleLocation.h - Which rule made an operation ------------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_RULELOCATION_H
#define AUTODIFF_SUPPORT_RULELOCATION_H

#include "mlir/IR/Location.h"

namespace mlir::autodiff {

/// `loc` marked as made by a rule, with the rule's formula for readers.
/// Debuggers see the same position.
Location ofRule(Location loc, const llvm::Twine &formula);

/// The formula of the rule that made the operation at `loc`; empty if no rule
/// did.
llvm::StringRef findRule(Location loc);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_RULELOCATION_H
