//===- Position.h - Where in the user's file something is -------*- C++ -*-===//

#ifndef AUTODIFF_SUPPORT_POSITION_H
#define AUTODIFF_SUPPORT_POSITION_H

#include "mlir/IR/Location.h"
#include <string>

namespace mlir::autodiff {

/// The file position of `loc`, if it has any. For inlined code that is the
/// innermost one, where the operation was written.
FileLineColLoc findPosition(Location loc);

/// The position of `loc` in the user's code, as "file:line:column": the
/// innermost one that is not in Triton's own library. Empty if there is none.
std::string spellPosition(Location loc);

/// The name of the user's variable that was assigned at `loc`; empty if there
/// is none. For inlined code that is the variable of the outermost call.
llvm::StringRef findVariable(Location loc);

/// `loc` with the name of another variable.
Location withVariable(Location loc, const llvm::Twine &name);

/// `loc` without the name of a variable.
Location withoutVariable(Location loc);

/// The prefix of the names of adjoints.
inline constexpr llvm::StringLiteral kAdjointPrefix = "d_";

/// Whether `loc` has the name of an adjoint.
bool isOfAdjoint(Location loc);

/// `loc` with the name of the adjoint of a variable, `d_x` for `x`. It stays as
/// it is if the variable has no name, or is an adjoint's.
Location ofAdjoint(Location loc, llvm::StringRef variable);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_POSITION_H
