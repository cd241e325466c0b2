//===- Numerics.h - Conversions between float formats -----------*- C++ -*-===//

#ifndef AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_NUMERICS_H
#define AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_NUMERICS_H

#include "mlir/IR/Builders.h"

namespace mlir::autodiff::cpu {

/// Converts `value`, which holds a float of type `from` (8-bit ones as i8), to
/// `to`; rounds to nearest even or toward zero.
Value convertFloat(OpBuilder &b, Location loc, Value value, FloatType from,
                   FloatType to, bool towardZero = false);

/// 2 to the power of an f32, to within one unit in the last place, in
/// arithmetic that vectorizes.
Value expandExp2(OpBuilder &b, Location loc, Value exponent);

/// The greater (or smaller) of two floats; of a number and NaN, the number. It
/// is not `llvm.maxnum`, since LLVM 22 vectorizes loops with several such
/// reductions wrongly.
Value selectNumber(OpBuilder &b, Location loc, bool isMax, Value x, Value y);

/// The same; of two zeros, the positive one is the greater, as on GPUs.
Value selectOrdered(OpBuilder &b, Location loc, bool isMax, Value x, Value y);

/// x · y + z in a type of fewer bits than f32, rounded once.
Value multiplyAddNarrow(OpBuilder &b, Location loc, ValueRange operands,
                        FloatType type);

/// Converts a float to an integer with the same order, for reductions by
/// maximum or minimum, and back. NaN becomes the smallest or the largest
/// integer.
Value encodeOrder(OpBuilder &b, Location loc, Value value, bool nanIsLargest);
Value decodeOrder(OpBuilder &b, Location loc, Value key, FloatType type);

/// The type in which arithmetic on `type` is done, with rounding after each
/// operation; `type` itself where the machine supports it.
FloatType getComputeType(FloatType type);

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_NUMERICS_H
