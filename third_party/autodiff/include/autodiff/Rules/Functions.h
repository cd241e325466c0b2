//===- Functions.h - Derivatives of mathematical functions ------*- C++ -*-===//
//
// One table by plain name ("tanh"), whether the function is an operation of the
// math dialect, a call of a device library, or an instruction in inline
// assembly.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_RULES_FUNCTIONS_H
#define AUTODIFF_RULES_FUNCTIONS_H

#include "autodiff/Analysis/MathFunctions.h"
#include "autodiff/Rules/Partials.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::autodiff {

/// The application y = f(x…) that is differentiated.
struct Application {
  llvm::ArrayRef<Tile> x;
  Tile y;
  Operation *op;

  /// Calls another function of the library that computed y.
  Tile call(llvm::StringRef function, llvm::ArrayRef<Value> operands) const;
};

/// A partial derivative times a tangent or cotangent t: t · ∂y/∂x_k.
using FunctionPartial = Tile (*)(Tile t, const Application &f);

struct Function {
  /// The formula that the documentation shows.
  std::string formula;
  /// One for each operand, null for an integer. (A float whose derivative is
  /// zero has one that returns zeros.) If there are none at all, the result is
  /// piecewise constant.
  SmallVector<FunctionPartial> partials;
};

using FunctionTable = llvm::StringMap<Function>;

/// The table of all functions.
const FunctionTable &getFunctions();

// Each fills in the functions of one file.
void addElementaryFunctions(FunctionTable &table);
void addArithmeticFunctions(FunctionTable &table);
void addSpecialFunctions(FunctionTable &table);

/// The table's entry for the function that `op` computes, or null; `name` gets
/// its plain name.
const Function *findFunction(Operation *op, std::string *name = nullptr);

/// The partial derivatives of `op`, which computes a function of the table.
Partials getPartials(Operation *op);

/// The digamma function ψ = (ln Γ)′.
Tile digamma(Tile x);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_FUNCTIONS_H
