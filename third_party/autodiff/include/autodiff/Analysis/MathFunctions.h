//===- MathFunctions.h - Which function an operation computes ---*- C++ -*-===//
//
// Functions have plain names ("tanh"), whatever computes them in TTIR: an
// operation of the math dialect, a call of a device library, an instruction in
// inline assembly.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_MATHFUNCTIONS_H
#define AUTODIFF_ANALYSIS_MATHFUNCTIONS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>

namespace mlir::autodiff {

/// The TTIR operations that compute a function, and its plain name.
llvm::ArrayRef<std::pair<llvm::StringLiteral, llvm::StringLiteral>>
getFunctionOperations();

/// The plain name of the function that `op` computes, as `isKnown` knows it
/// (see getPlainName); "" if it computes none.
std::string getFunctionName(Operation *op,
                            llvm::function_ref<bool(llvm::StringRef)> isKnown);

/// The operands of `op` that its function gets, in its order.
SmallVector<unsigned> getFunctionOperands(Operation *op);

/// The functions whose results do not move with their operands, by plain name.
llvm::ArrayRef<llvm::StringLiteral> getPiecewiseConstantFunctions();

/// Whether `op` computes one of them: its results have no derivative.
bool isPiecewiseConstant(Operation *op);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_MATHFUNCTIONS_H
