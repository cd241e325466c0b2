//===- Numerics.cpp - Conversions between float formats -------------------===//
//
// bf16 and 8-bit floats are converted with integer arithmetic: it vectorizes
// everywhere, and no machine needs a library routine.
//
//===----------------------------------------------------------------------===//

#include "Numerics.h"

#include "autodiff/Support/Mutation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/APFloat.h"

#include <cmath>

using namespace mlir;
using namespace mlir::autodiff;
using namespace mlir::autodiff::cpu;

FloatType cpu::getComputeType(FloatType type) {
  return type.getWidth() < 32 ? Float32Type::get(type.getContext()) : type;
}

namespace {

/// Shorthand for arithmetic on bit patterns.
struct Bits {
  ImplicitLocOpBuilder b;

  Value constant(Type type, int64_t value) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  }
  Value constant(Value like, int64_t value) {
    return constant(like.getType(), value);
  }
  Value real(Type type, double value) {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  }
  Value bitcast(Type type, Value value) {
    return arith::BitcastOp::create(b, type, value);
  }
  Value bits(Value value) {
    return bitcast(b.getIntegerType(value.getType().getIntOrFloatBitWidth()),
                   value);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value andi(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value ori(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value shl(Value x, int64_t n) {
    return arith::ShLIOp::create(b, x, constant(x, n));
  }
  Value shr(Value x, int64_t n) {
    return arith::ShRUIOp::create(b, x, constant(x, n));
  }
  Value zext(Type type, Value x) { return arith::ExtUIOp::create(b, type, x); }
  Value trunc(Type type, Value x) {
    return arith::TruncIOp::create(b, type, x);
  }
  Value select(Value c, Value x, Value y) {
    return arith::SelectOp::create(b, c, x, y);
  }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, x, y);
  }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, predicate, x, y);
  }
  Value abs(Value x) { return math::AbsFOp::create(b, x); }
};

} // namespace

/// Narrows a float so that a second rounding to fewer bits gives the same as
/// one rounding: an inexact result gets an odd last bit.
static Value truncToOdd(Bits &k, Value value, FloatType to) {
  Value narrow = arith::TruncFOp::create(k.b, to, value);
  if (mutation::isMade("cpu-convert:doubles are rounded twice"))
    return narrow;
  Value back = arith::ExtFOp::create(k.b, value.getType(), narrow);
  Value bits = k.bits(narrow);
  Value one = k.constant(bits, 1);
  Value larger =
      k.compare(arith::CmpFPredicate::OGT, k.abs(back), k.abs(value));
  Value moved = k.select(larger, k.sub(bits, one), k.add(bits, one));
  Value isEven = k.compare(arith::CmpIPredicate::eq, k.andi(bits, one),
                           k.constant(bits, 0));
  Value inexact = k.compare(arith::CmpFPredicate::ONE, back, value);
  Value fix = k.andi(isEven, inexact);
  return k.bitcast(to, k.select(fix, moved, bits));
}

/// f32 to f16 or bf16, to nearest even.
static Value truncToHalf(Bits &k, Value value, FloatType to) {
  if (to.isF16())
    return arith::TruncFOp::create(k.b, to, value);
  Value bits = k.bits(value);
  Value isNan = k.compare(arith::CmpFPredicate::UNO, value, value);
  Value last = k.andi(k.shr(bits, 16), k.constant(bits, 1));
  if (mutation::isMade("cpu-convert:ties away from zero"))
    last = k.constant(bits, 1);
  Value rounded = k.add(k.add(bits, k.constant(bits, 0x7fff)), last);
  Value quiet = k.ori(bits, k.constant(bits, 0x400000));
  Value upper = k.shr(mutation::isMade("cpu-convert:NaN is rounded")
                          ? rounded
                          : k.select(isNan, quiet, rounded),
                      16);
  return k.bitcast(to, k.trunc(k.b.getI16Type(), upper));
}

/// Moves a rounded value back toward zero where rounding enlarged it.
static Value undoRoundingUp(Bits &k, Value original, Value rounded,
                            Value widened) {
  Value bits = k.bits(rounded);
  Value larger =
      k.compare(arith::CmpFPredicate::OGT, k.abs(widened), k.abs(original));
  Value smaller = k.sub(bits, k.constant(bits, 1));
  return k.bitcast(rounded.getType(), k.select(larger, smaller, bits));
}

//===----------------------------------------------------------------------===//
// 8-bit formats
//===----------------------------------------------------------------------===//

/// The layout of an 8-bit format: S.E.M.
struct Format8 {
  int mantissa, bias;
  bool hasInfinity, isUnsignedZero;
  /// Encoding of the largest finite number and of NaN.
  int largest, nan;

  explicit Format8(FloatType type) {
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    mantissa = type.getFPMantissaWidth() - 1;
    bias = 1 - llvm::APFloat::semanticsMinExponent(semantics);
    hasInfinity = llvm::APFloat::semanticsHasInf(semantics);
    llvm::APFloat nanValue = llvm::APFloat::getNaN(semantics);
    nan = nanValue.bitcastToAPInt().getZExtValue();
    largest =
        llvm::APFloat::getLargest(semantics).bitcastToAPInt().getZExtValue();
    isUnsignedZero = nan == 0x80;
    if (!isUnsignedZero)
      nan &= 0x7f;
  }
};

/// The number's exponent and mantissa become an f32's, which is then scaled by
/// the difference of the biases: that normalizes subnormal numbers too.
static Value extendFloat8(Bits &k, Value value, FloatType from) {
  Format8 format(from);
  Type i32 = k.b.getI32Type(), f32 = k.b.getF32Type();
  Value bits = k.zext(i32, value);
  Value magnitude = k.andi(bits, k.constant(i32, 0x7f));
  Value sign = k.shl(k.andi(bits, k.constant(i32, 0x80)), 24);
  Value scaled = arith::MulFOp::create(
      k.b, k.bitcast(f32, k.shl(magnitude, 23 - format.mantissa)),
      k.real(f32, std::ldexp(1.0, 127 - format.bias)));
  Value result = k.bits(scaled);
  Value quietNan = k.constant(i32, 0x7fc00000);
  if (format.isUnsignedZero) {
    Value isNan =
        k.compare(arith::CmpIPredicate::eq, bits, k.constant(i32, format.nan));
    return k.bitcast(f32, k.select(isNan, quietNan, k.ori(result, sign)));
  }
  if (format.hasInfinity) {
    int infinity = format.largest + 1;
    Value isInfinite = k.compare(arith::CmpIPredicate::eq, magnitude,
                                 k.constant(i32, infinity));
    Value isNan = k.compare(arith::CmpIPredicate::ugt, magnitude,
                            k.constant(i32, infinity));
    result = k.select(isInfinite, k.constant(i32, 0x7f800000), result);
    result = k.select(isNan, quietNan, result);
  } else {
    Value isNan = k.compare(arith::CmpIPredicate::ugt, magnitude,
                            k.constant(i32, format.largest));
    result = k.select(isNan, quietNan, result);
  }
  return k.bitcast(f32, k.ori(result, sign));
}

/// Rounds the mantissa as an integer, so that a carry runs into the exponent.
/// Numbers below the smallest normal one are rounded by an addition that aligns
/// their last bit with the last bit of an f32.
static Value truncToFloat8(Bits &k, Value value, FloatType to,
                           bool towardZero) {
  Format8 format(to);
  Type i32 = k.b.getI32Type(), f32 = k.b.getF32Type();
  Value bits = k.bits(value);
  Value sign = k.shr(k.andi(bits, k.constant(i32, 0x80000000)), 24);
  Value magnitude = k.andi(bits, k.constant(i32, 0x7fffffff));
  int drop = 23 - format.mantissa;

  Value last = k.andi(k.shr(magnitude, drop), k.constant(i32, 1));
  Value half = k.add(k.constant(i32, (1 << (drop - 1)) - 1), last);
  Value rounded = towardZero ? magnitude : k.add(magnitude, half);
  Value normal = k.sub(k.shr(rounded, drop),
                       k.constant(i32, static_cast<int64_t>(127 - format.bias)
                                           << format.mantissa));

  // 2^(1 - bias - mantissa) is the spacing of subnormal numbers.
  int spacing = 1 - format.bias - format.mantissa;
  Value positive = k.bitcast(f32, magnitude);
  Value units = arith::MulFOp::create(k.b, positive,
                                      k.real(f32, std::ldexp(1.0, -spacing)));
  Value limit = k.real(f32, 1 << (format.mantissa + 1));
  Value clamped = arith::MinNumFOp::create(k.b, units, limit);
  Value whole = towardZero
                    ? math::FloorOp::create(k.b, clamped).getResult()
                    : math::RoundEvenOp::create(k.b, clamped).getResult();
  Value subnormal = arith::FPToSIOp::create(k.b, i32, whole);

  Value isSmall = k.compare(arith::CmpFPredicate::OLT, positive,
                            k.real(f32, std::ldexp(1.0, 1 - format.bias)));
  Value result = mutation::isMade("cpu-float8:none is subnormal")
                     ? normal
                     : k.select(isSmall, subnormal, normal);
  // Saturates, as conversions on GPUs do. Infinity and NaN stay if the format
  // has them.
  Value largest = k.constant(i32, format.largest);
  Value tooLarge = k.compare(arith::CmpIPredicate::sgt, result, largest);
  if (!mutation::isMade("cpu-float8:the largest wraps"))
    result = k.select(tooLarge, largest, result);
  if (format.hasInfinity) {
    Value isInfinite = k.compare(arith::CmpIPredicate::eq, magnitude,
                                 k.constant(i32, 0x7f800000));
    result = k.select(isInfinite, k.constant(i32, format.largest + 1), result);
  }
  Value isNan = k.compare(arith::CmpIPredicate::ugt, magnitude,
                          k.constant(i32, 0x7f800000));
  result = k.select(isNan, k.constant(i32, format.nan), result);
  if (format.isUnsignedZero &&
      !mutation::isMade("cpu-float8:a negative zero")) {
    Value isZero =
        k.compare(arith::CmpIPredicate::eq, result, k.constant(i32, 0));
    sign = k.select(isZero, k.constant(i32, 0), sign);
  }
  return k.trunc(k.b.getI8Type(), k.ori(result, sign));
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// 2^x = 2^n 2^r with n the nearest integer: 2^r by its Taylor polynomial, 2^n
/// as two factors, so that results below the normal range are rounded once.
Value cpu::expandExp2(OpBuilder &b, Location loc, Value x) {
  Bits k{ImplicitLocOpBuilder(loc, b)};
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  auto limit = [&](arith::CmpFPredicate predicate, double bound, Value value) {
    Value beyond = k.compare(predicate, value, k.real(f32, bound));
    return k.select(beyond, k.real(f32, bound), value);
  };
  // Beyond these bounds, the result is zero or infinity; NaN stays.
  x = limit(arith::CmpFPredicate::OLT, -151.0, x);
  x = limit(arith::CmpFPredicate::OGT, 129.0, x);
  Value whole = math::RoundEvenOp::create(k.b, x);
  Value rest = arith::SubFOp::create(k.b, x, whole);

  // ln(2)^i / i!
  double coefficients[8] = {1.0};
  for (int i = 1; i < 8; ++i)
    coefficients[i] = coefficients[i - 1] * 0.693147180559945309417 / i;
  Value power = k.real(f32, coefficients[7]);
  for (int i = 6; i >= 0; --i)
    power = math::FmaOp::create(k.b, power, rest, k.real(f32, coefficients[i]));

  Value isNan = k.compare(arith::CmpFPredicate::UNO, x, x);
  Value exponent = arith::FPToSIOp::create(
      k.b, i32, k.select(isNan, k.real(f32, 0.0), whole));
  Value half = arith::ShRSIOp::create(k.b, exponent, k.constant(i32, 1));
  for (Value part : {half, k.sub(exponent, half)}) {
    Value factor = k.bitcast(f32, k.shl(k.add(part, k.constant(i32, 127)), 23));
    power = arith::MulFOp::create(k.b, power, factor);
  }
  return power;
}

Value cpu::selectNumber(OpBuilder &b, Location loc, bool isMax, Value x,
                        Value y) {
  Bits k{ImplicitLocOpBuilder(loc, b)};
  Value wins = k.compare(
      isMax ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, x, y);
  Value alone = k.compare(arith::CmpFPredicate::UNO, y, y);
  return k.select(
      mutation::isMade("cpu-maximum:NaN stays") ? wins : k.ori(wins, alone), x,
      y);
}

Value cpu::selectOrdered(OpBuilder &b, Location loc, bool isMax, Value x,
                         Value y) {
  Bits k{ImplicitLocOpBuilder(loc, b)};
  Value chosen = selectNumber(b, loc, isMax, x, y);
  if (mutation::isMade("cpu-maximum:of two zeros the second"))
    return chosen;
  // Equal floats with different bits are zeros.
  Value areEqual = k.compare(arith::CmpFPredicate::OEQ, x, y);
  Value both =
      isMax ? k.andi(k.bits(x), k.bits(y)) : k.ori(k.bits(x), k.bits(y));
  return k.select(areEqual, k.bitcast(x.getType(), both), chosen);
}

/// Inverts all bits but the sign of negative numbers. A NaN with all bits set,
/// or all but the sign, then is the smallest or largest integer.
static Value flipNegative(Bits &k, Value bits) {
  unsigned width = bits.getType().getIntOrFloatBitWidth();
  Value sign = arith::ShRSIOp::create(k.b, bits, k.constant(bits, width - 1));
  Value others = k.shr(k.constant(bits, -1), 1);
  return arith::XOrIOp::create(k.b, bits, k.andi(sign, others));
}

Value cpu::encodeOrder(OpBuilder &b, Location loc, Value value,
                       bool nanIsLargest) {
  Bits k{ImplicitLocOpBuilder(loc, b)};
  Value key = flipNegative(k, k.bits(value));
  unsigned width = key.getType().getIntOrFloatBitWidth();
  APInt bound = nanIsLargest ? APInt::getSignedMaxValue(width)
                             : APInt::getSignedMinValue(width);
  Value nan = k.constant(key, bound.getSExtValue());
  auto type = cast<FloatType>(value.getType());
  // There is no arithmetic of bf16: see IntegerBFloats.cpp.
  Value wide = convertFloat(b, loc, value, type, getComputeType(type));
  Value isNan = k.compare(arith::CmpFPredicate::UNO, wide, wide);
  return k.select(isNan, nan, key);
}

Value cpu::decodeOrder(OpBuilder &b, Location loc, Value key, FloatType type) {
  Bits k{ImplicitLocOpBuilder(loc, b)};
  return k.bitcast(type, flipNegative(k, key));
}

//===----------------------------------------------------------------------===//
// Any format
//===----------------------------------------------------------------------===//

Value cpu::convertFloat(OpBuilder &b, Location loc, Value value, FloatType from,
                        FloatType to, bool towardZero) {
  if (from == to)
    return value;
  Bits k{ImplicitLocOpBuilder(loc, b)};
  Type f32 = b.getF32Type();

  // First to f32 at least.
  if (from.getWidth() == 8) {
    value = extendFloat8(k, value, from);
  } else if (from.isBF16()) {
    Value bits = k.zext(b.getI32Type(), k.bits(value));
    value = k.bitcast(f32, k.shl(bits, 16));
  } else if (from.isF16()) {
    value = arith::ExtFOp::create(b, loc, f32, value);
  }

  // Then to the target.
  auto current = cast<FloatType>(value.getType());
  if (to == current)
    return value;
  if (to.isF64())
    return arith::ExtFOp::create(b, loc, to, value);
  if (to.isF32()) {
    Value narrow = arith::TruncFOp::create(b, loc, to, value);
    if (!towardZero)
      return narrow;
    return undoRoundingUp(k, value, narrow,
                          arith::ExtFOp::create(b, loc, current, narrow));
  }
  if (current.isF64())
    value = truncToOdd(k, value, b.getF32Type());
  if (to.getWidth() == 8)
    return truncToFloat8(k, value, to, towardZero);
  Value narrow = truncToHalf(k, value, to);
  if (!towardZero)
    return narrow;
  return undoRoundingUp(k, value, narrow,
                        convertFloat(b, loc, narrow, to, b.getF32Type()));
}

/// The product is exact in f64, the sum may not be: its rounding error becomes
/// an odd last bit, so that the second rounding is right.
Value cpu::multiplyAddNarrow(OpBuilder &b, Location loc, ValueRange operands,
                             FloatType type) {
  Bits k{ImplicitLocOpBuilder(loc, b)};
  FloatType f64 = b.getF64Type();
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddFOp::create(k.b, x, y);
  };
  auto sub = [&](Value x, Value y) -> Value {
    return arith::SubFOp::create(k.b, x, y);
  };
  SmallVector<Value> wide;
  for (Value operand : operands)
    wide.push_back(convertFloat(b, loc, operand, type, f64));
  Value product = arith::MulFOp::create(k.b, wide[0], wide[1]);
  Value sum = add(product, wide[2]);
  Value part = sub(sum, product);
  Value lost = add(sub(product, sub(sum, part)), sub(wide[2], part));

  Value zero = k.real(f64, 0.0);
  Value bits = k.bits(sum), one = k.constant(bits, 1);
  Value isEven = k.compare(arith::CmpIPredicate::eq, k.andi(bits, one),
                           k.constant(bits, 0));
  Value isInexact = k.compare(arith::CmpFPredicate::ONE, lost, zero);
  Value isLarger =
      arith::CmpIOp::create(k.b, arith::CmpIPredicate::eq,
                            k.compare(arith::CmpFPredicate::OGT, lost, zero),
                            k.compare(arith::CmpFPredicate::OGT, sum, zero));
  Value odd = k.select(isLarger, k.add(bits, one), k.sub(bits, one));
  Value fixed = k.select(k.andi(isEven, isInexact), odd, bits);
  return convertFloat(b, loc, k.bitcast(f64, fixed), f64, type);
}
