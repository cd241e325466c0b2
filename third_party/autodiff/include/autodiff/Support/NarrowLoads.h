//===- NarrowLoads.h - Narrow elements in memory ----------------*- C++ -*-===//
//
// Triton lays out the operands of a matrix instruction by the narrowest
// elements in memory that they are computed from, indices and masks included,
// and by half as many bits if any of that is joined of two tiles
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

/// The width by which Triton lays out an operand, of float64 or of what is
/// loaded: that of the narrowest load, or half of it behind a `tt.join`,
/// however many there are.
int64_t findLayoutWidth(Value operand);

/// How many neighbours along a product's sum a thread has if an operand is
/// laid out by so many bits: as many as 32 bits hold.
inline int64_t getNeighbours(int64_t bits) { return bits < 32 ? 32 / bits : 1; }

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_NARROWLOADS_H
