//===- CotangentFactors.h - What cotangents are multiplied by ---*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_REVERSE_COTANGENTFACTORS_H
#define AUTODIFF_LIB_TRANSFORMS_REVERSE_COTANGENTFACTORS_H

#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Lets `forward` save factors L(1) in place of some of the residuals that are
/// to be saved, and drops these from `saved`, if that takes fewer bytes, or
/// time that bytes compare to.
///
/// What a backward makes of a cotangent t, element by element, is linear in it:
/// L(t) = t · L(1). If memory has t in bfloat16, it has the factor, too. The
/// result is then the exact one of a cotangent within half a unit in the last
/// place of t, element by element (a backward error, as in Higham, "Accuracy
/// and Stability of Numerical Algorithms", 2002, section 1.5).
void saveFactors(triton::FuncOp backward, triton::FuncOp forward,
                 SmallVectorImpl<ResidualOp> &saved);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_REVERSE_COTANGENTFACTORS_H
