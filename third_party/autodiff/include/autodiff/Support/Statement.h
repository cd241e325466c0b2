//===- Statement.h - What a value is of the user's statement ----*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_STATEMENT_H
#define AUTODIFF_SUPPORT_STATEMENT_H

#include "mlir/IR/Value.h"
#include <string>

namespace mlir::autodiff {

/// The user's line at `loc`, as "file:line"; empty if it is not known.
std::string findStatement(Location loc);

/// The user's variable that a value belongs to: its own, or that of the value
/// that it is the result of a loop or branch of, or the transposition of. Empty
/// if there is no name.
llvm::StringRef findVariableOf(Value value);

/// Whether `value` is an intermediate result of the statement that assigns the
/// variable it is named for.
bool isPartOfStatement(Value value);

/// The name of a value in printed kernels: `x` for the variable's own value,
/// `x_part` for an intermediate result.
std::string nameInStatement(Value value, llvm::StringRef variable);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_STATEMENT_H
