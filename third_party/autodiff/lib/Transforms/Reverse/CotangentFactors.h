//===- CotangentFactors.h - What cotangents are multiplied by ---*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_REVERSE_COTANGENTFACTORS_H
#define AUTODIFF_LIB_TRANSFORMS_REVERSE_COTANGENTFACTORS_H

#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Lets `forward` save factors L(1) in place of some residuals, and drops these
/// from `saved`, if that takes fewer bytes, or less time, measured in bytes.
///
/// Elementwise operations on a cotangent t are linear in it: L(t) = t · L(1).
/// If t and all gradients are in memory as bfloat16, the factor is saved in
/// bfloat16, too. The result is then the exact one for a cotangent within half
/// a unit in the last place of t, element by element (a backward error, as in
/// Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
/// section 1.5).
void saveFactors(triton::FuncOp backward, triton::FuncOp forward,
                 SmallVectorImpl<ResidualOp> &saved);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_REVERSE_COTANGENTFACTORS_H
