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

/// The type that arithmetic on `type` is done in, to be rounded after each
/// operation; `type` itself where the machine has it.
FloatType getComputeType(FloatType type);

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_NUMERICS_H
