//===- MathFunctions.h - Which function an operation computes ---*- C++ -*-===//
//
// A function has one plain name, "tanh", whether it is an operation of the math
// dialect, a call of a device library, or an instruction in inline assembly.
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

/// The plain name of the function that `op` computes, or "" if there is none.
/// `isKnown` says which names there are (see getPlainName).
std::string getFunctionName(Operation *op,
                            llvm::function_ref<bool(llvm::StringRef)> isKnown);

/// Which operands of `op` are the function's arguments, in its order.
SmallVector<unsigned> getFunctionOperands(Operation *op);

/// Functions with derivative zero (floor, sign, …), by plain name.
llvm::ArrayRef<llvm::StringLiteral> getPiecewiseConstantFunctions();

/// Whether `op` computes one of these.
bool isPiecewiseConstant(Operation *op);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_MATHFUNCTIONS_H
