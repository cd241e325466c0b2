//===- MaskedContributions.h - Contributions beside branches ----*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_MERGE_MASKEDCONTRIBUTIONS_H
#define AUTODIFF_LIB_TRANSFORMS_MERGE_MASKEDCONTRIBUTIONS_H

#include "autodiff/Dialect/Autodiff.h"

namespace mlir::autodiff {

/// Moves a contribution out of the branches around it: they become its mask.
/// It stays in those in which more than arithmetic and loads computes its
/// address; such loads may not see what the kernel stores.
void takeOutOfBranches(AccumulateOp op);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_MERGE_MASKEDCONTRIBUTIONS_H
