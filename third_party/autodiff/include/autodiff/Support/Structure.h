//===- Structure.h - Control flow as loops and branches ---------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_STRUCTURE_H
#define AUTODIFF_SUPPORT_STRUCTURE_H

#include "mlir/IR/Region.h"

namespace mlir::autodiff {

/// Turns the blocks of a region (early returns) into structured control flow
/// in one block.
LogicalResult structureRegion(Region &region);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_STRUCTURE_H
