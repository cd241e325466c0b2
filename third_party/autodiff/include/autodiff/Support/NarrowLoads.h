//===- NarrowLoads.h - Narrow elements in memory ----------------*- C++ -*-===//
//
// Triton lays out the operands of a matrix instruction by the narrowest
// elements in memory that they are computed from, indices and masks included
// (`computeOrigBitWidth` in its AccelerateMatmul.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_SUPPORT_NARROWLOADS_H
#define AUTODIFF_SUPPORT_NARROWLOADS_H

#include "mlir/IR/Value.h"

namespace mlir::autodiff {

/// The width of the narrowest elements in memory that a value is computed from,
/// from 8 to 64 bits.
int64_t findNarrowestLoad(Value value);

/// How many neighbours along a product's sum a thread has if an operand is
/// computed from elements of so many bits: as many as 32 bits hold.
inline int64_t getNeighbours(int64_t bits) { return bits < 32 ? 32 / bits : 1; }

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_NARROWLOADS_H
