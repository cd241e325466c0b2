//===- Statement.h - What a value is of the user's statement ----*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_STATEMENT_H
#define AUTODIFF_SUPPORT_STATEMENT_H

#include "mlir/IR/Value.h"
#include <string>

namespace mlir::autodiff {

/// The user's line at `loc`, as "file:line"; empty if it is not known.
std::string findStatement(Location loc);

/// The user's variable that a value is, or what it was made of: it is a result
/// of a loop or a branch, or transposed. Empty if it has no name.
llvm::StringRef findVariableOf(Value value);

/// Whether `value` is a part of the statement that assigns the variable which
/// it is named for: the rest of the statement uses it.
bool isPartOfStatement(Value value);

/// What a value is called in printed kernels that is of this variable: `x`, or
/// `x_part` if the statement goes on with it.
std::string nameInStatement(Value value, llvm::StringRef variable);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_STATEMENT_H
