//===- Position.h - Where in the user's file something is -------*- C++ -*-===//

#ifndef AUTODIFF_SUPPORT_POSITION_H
#define AUTODIFF_SUPPORT_POSITION_H

#include "mlir/IR/Location.h"
#include <string>

namespace mlir::autodiff {

/// The file position that stands for `loc`, if it has any. For inlined code
/// that is the innermost position, where the operation was written.
FileLineColLoc findPosition(Location loc);

/// Where in the user's code `loc` is, as "file:line:column": the innermost
/// position that is not in Triton's own library. Empty if there is none.
std::string spellPosition(Location loc);

/// The name of the user's variable that was assigned at `loc`; empty if there
/// is none. Of inlined code that is the variable of the outermost call.
llvm::StringRef findVariable(Location loc);

/// `loc` as that of a variable with another name.
Location withVariable(Location loc, const llvm::Twine &name);

/// `loc` as that of no variable.
Location withoutVariable(Location loc);

/// What the names of adjoints begin with.
inline constexpr llvm::StringLiteral kAdjointPrefix = "d_";

/// Whether `loc` has the name of an adjoint.
bool isOfAdjoint(Location loc);

/// `loc` as that of the adjoint of a variable, which is called `d_x` for `x`;
/// the same if the variable has no name, or it is that of an adjoint.
Location ofAdjoint(Location loc, llvm::StringRef variable);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_POSITION_H
