//===- MaskedContributions.h - Contributions beside branches ----*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_MERGE_MASKEDCONTRIBUTIONS_H
#define AUTODIFF_LIB_TRANSFORMS_MERGE_MASKEDCONTRIBUTIONS_H

#include "autodiff/Dialect/Autodiff.h"

namespace mlir::autodiff {

/// Moves a contribution out of the branches around it; their conditions become
/// its mask. It stays inside of branches where more than arithmetic and loads
/// is needed for its address. Such loads must not read what the kernel stores.
void takeOutOfBranches(AccumulateOp op);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_MERGE_MASKEDCONTRIBUTIONS_H
