//===- Elementwise.cpp - One element of an elementwise operation ----------===//
//
// Defines what GPUs define and LLVM leaves undefined: division by zero, shifts
// by too much, floats out of an integer's range.
//
//===----------------------------------------------------------------------===//

#include "Libdevice.h"
#include "Lowering.h"
#include "Numerics.h"
#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::autodiff::cpu;
namespace tt = mlir::triton;

static Value makeInteger(OpBuilder &b, Location loc, Type type, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Quotient and remainder. For a zero divisor, they are all ones and the
/// dividend, as on GPUs; the processor would trap. Up to 32 bits, the quotient
/// is computed in f64, exactly, since that vectorizes.
static Value lowerDivision(OpBuilder &b, Operation *op, Value x, Value y) {
  Location loc = op->getLoc();
  Type type = x.getType();
  unsigned width = type.getIntOrFloatBitWidth();
  bool isSigned = isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp,
                      arith::CeilDivSIOp>(op);
  bool wantsQuotient = isa<arith::DivSIOp, arith::DivUIOp>(op);

  APInt divisor;
  if (matchPattern(y, m_ConstantInt(&divisor)) && !divisor.isZero() &&
      !divisor.isAllOnes()) {
    if (isSigned)
      return wantsQuotient ? LLVM::SDivOp::create(b, loc, x, y).getResult()
                           : LLVM::SRemOp::create(b, loc, x, y).getResult();
    return wantsQuotient ? LLVM::UDivOp::create(b, loc, x, y).getResult()
                         : LLVM::URemOp::create(b, loc, x, y).getResult();
  }

  Value zero = makeInteger(b, loc, type, 0);
  Value isZero =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, y, zero);
  Value safe = autodiff::mutation::isMade("cpu-division:by zero")
                   ? y
                   : arith::SelectOp::create(b, loc, isZero,
                                             makeInteger(b, loc, type, 1), y)
                         .getResult();
  Value quotient;
  if (width <= 32) {
    Type f64 = b.getF64Type(), i64 = b.getI64Type();
    auto toFloat = [&](Value v) -> Value {
      if (isSigned)
        return arith::SIToFPOp::create(b, loc, f64, v);
      return arith::UIToFPOp::create(b, loc, f64, v);
    };
    Value real = arith::DivFOp::create(b, loc, toFloat(x), toFloat(safe));
    // 64 bits can hold the quotient of the smallest number by -1.
    Value wide = arith::FPToSIOp::create(b, loc, i64, real);
    quotient = arith::TruncIOp::create(b, loc, type, wide);
  } else if (isSigned) {
    // The smallest number has no negative: division by -1 is a subtraction.
    Value isMinusOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                             y, makeInteger(b, loc, type, -1));
    Value divisor =
        autodiff::mutation::isMade("cpu-division:the smallest by minus one")
            ? safe
            : arith::SelectOp::create(b, loc, isMinusOne,
                                      makeInteger(b, loc, type, 1), safe)
                  .getResult();
    Value plain = LLVM::SDivOp::create(b, loc, x, divisor);
    Value negated = arith::SubIOp::create(b, loc, zero, x);
    quotient = arith::SelectOp::create(b, loc, isMinusOne, negated, plain);
  } else {
    quotient = LLVM::UDivOp::create(b, loc, x, safe);
  }
  if (wantsQuotient)
    return arith::SelectOp::create(b, loc, isZero,
                                   makeInteger(b, loc, type, -1), quotient);
  Value product = arith::MulIOp::create(b, loc, quotient, y);
  return arith::SubIOp::create(b, loc, x, product);
}

/// Shifts by the width or more give the same as shifting bit by bit.
static Value lowerShift(OpBuilder &b, Operation *op, Value x, Value amount) {
  Location loc = op->getLoc();
  Type type = x.getType();
  int64_t width = type.getIntOrFloatBitWidth();
  Value limit = makeInteger(b, loc, type, width - 1);
  if (isa<arith::ShRSIOp>(op)) {
    Value clamped = arith::MinUIOp::create(b, loc, amount, limit);
    return LLVM::AShrOp::create(b, loc, x, clamped);
  }
  Value clamped = arith::AndIOp::create(b, loc, amount, limit);
  Value shifted = isa<arith::ShLIOp>(op)
                      ? LLVM::ShlOp::create(b, loc, x, clamped).getResult()
                      : LLVM::LShrOp::create(b, loc, x, clamped).getResult();
  if (autodiff::mutation::isMade("cpu-shift:amounts wrap"))
    return shifted;
  Value fits =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, amount, limit);
  return arith::SelectOp::create(b, loc, fits, shifted,
                                 makeInteger(b, loc, type, 0));
}

static Value lowerMulHi(OpBuilder &b, Location loc, Value x, Value y) {
  Type type = x.getType();
  unsigned width = type.getIntOrFloatBitWidth();
  Type wide = b.getIntegerType(2 * width);
  Value product =
      arith::MulIOp::create(b, loc, arith::ExtUIOp::create(b, loc, wide, x),
                            arith::ExtUIOp::create(b, loc, wide, y));
  Value upper =
      arith::ShRUIOp::create(b, loc, product, makeInteger(b, loc, wide, width));
  return arith::TruncIOp::create(b, loc, type, upper);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// Saturates, and converts NaN to zero, as GPUs do. Narrow results are the low
/// bits of a 32-bit conversion.
static Value lowerFloatToInt(OpBuilder &b, Operation *op, Value x) {
  Location loc = op->getLoc();
  bool isSigned = isa<arith::FPToSIOp>(op);
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  Type computed = type.getIntOrFloatBitWidth() < 32 ? b.getI32Type() : type;
  auto from = cast<FloatType>(x.getType());
  x = convertFloat(b, loc, x, from, getComputeType(from));
  if (autodiff::mutation::isMade(
          "cpu-convert:floats beyond an integer's range"))
    return isSigned ? arith::FPToSIOp::create(b, loc, type, x).getResult()
                    : arith::FPToUIOp::create(b, loc, type, x).getResult();
  StringRef name = isSigned ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
  Value result = LLVM::CallIntrinsicOp::create(
                     b, loc, computed, b.getStringAttr(name), ValueRange{x})
                     .getResult(0);
  if (type != computed)
    result = arith::TruncIOp::create(b, loc, type, result);
  return result;
}

static Value lowerIntToFloat(OpBuilder &b, Operation *op, Value x) {
  Location loc = op->getLoc();
  auto to = cast<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
  // Enough bits for the second rounding to be right after the first one.
  FloatType computed = to.getWidth() < 32 &&
                               x.getType().getIntOrFloatBitWidth() > 16 &&
                               !autodiff::mutation::isMade(
                                   "cpu-convert:integers are rounded twice")
                           ? FloatType(Float64Type::get(b.getContext()))
                           : getComputeType(to);
  Value result;
  if (isa<arith::SIToFPOp>(op))
    result = arith::SIToFPOp::create(b, loc, computed, x);
  else
    result = arith::UIToFPOp::create(b, loc, computed, x);
  return convertFloat(b, loc, result, computed, to);
}

static Value lowerClamp(OpBuilder &b, tt::ClampFOp op, ValueRange operands) {
  Location loc = op.getLoc();
  auto type = cast<FloatType>(operands[0].getType());
  SmallVector<Value> wide;
  for (Value operand : operands)
    wide.push_back(convertFloat(b, loc, operand, type, getComputeType(type)));
  Value result;
  if (op.getPropagateNan() == tt::PropagateNan::ALL)
    result = arith::MinimumFOp::create(
        b, loc, arith::MaximumFOp::create(b, loc, wide[0], wide[1]), wide[2]);
  else
    result = selectNumber(
        b, loc, /*isMax=*/false,
        selectNumber(b, loc, /*isMax=*/true, wide[0], wide[1]), wide[2]);
  return convertFloat(b, loc, result, getComputeType(type), type);
}

//===----------------------------------------------------------------------===//
// Bits and pointers
//===----------------------------------------------------------------------===//

static Value lowerBitcast(OpBuilder &b, Location loc, Value x, Type to) {
  Type from = x.getType();
  if (from == to)
    return x;
  if (isa<LLVM::LLVMPointerType>(from) && isa<LLVM::LLVMPointerType>(to))
    return x;
  if (isa<LLVM::LLVMPointerType>(from))
    return LLVM::PtrToIntOp::create(b, loc, to, x);
  if (isa<LLVM::LLVMPointerType>(to))
    return LLVM::IntToPtrOp::create(b, loc, to, x);
  return arith::BitcastOp::create(b, loc, to, x);
}

/// The function of the C library for operations whose expansion in MLIR is less
/// accurate.
static StringRef getLibmName(Operation *op) {
  if (isa<math::ExpM1Op>(op))
    return "expm1";
  if (isa<math::Log1pOp>(op))
    return "log1p";
  return "";
}

/// The same operation on scalars. For narrower types, it is computed in f32 and
/// rounded.
static Value cloneScalar(Lowering &lowering, OpBuilder &b, Operation *op,
                         ValueRange operands) {
  Location loc = op->getLoc();
  SmallVector<Value> inputs(operands);
  Type resultType = getElementTypeOrSelf(op->getResult(0).getType());
  Type computed = resultType;
  bool movesBits = isa<arith::SelectOp, arith::ConstantOp, arith::NegFOp>(op);
  if (!movesBits) {
    for (Value &input : inputs)
      if (auto type = dyn_cast<FloatType>(input.getType()))
        input = convertFloat(b, loc, input, type, getComputeType(type));
    if (auto type = dyn_cast<FloatType>(resultType))
      computed = getComputeType(type);
  } else if (!isa<arith::ConstantOp>(op)) {
    computed = inputs.back().getType();
  }
  Value result;
  if (StringRef name = getLibmName(op); !name.empty()) {
    std::string symbol = computed.isF32() ? (name + "f").str() : name.str();
    result = lowering.callExternal(b, loc, symbol, computed, inputs);
  } else if (isa<arith::MaxNumFOp, arith::MinNumFOp>(op)) {
    result =
        selectOrdered(b, loc, isa<arith::MaxNumFOp>(op), inputs[0], inputs[1]);
  } else if (isa<math::Exp2Op>(op) && computed.isF32()) {
    result = expandExp2(b, loc, inputs[0]);
  } else {
    OperationState state(loc, op->getName(), inputs, TypeRange(computed),
                         op->getAttrs());
    result = b.create(state)->getResult(0);
  }
  if (!movesBits && computed != resultType)
    result = convertFloat(b, loc, result, cast<FloatType>(computed),
                          cast<FloatType>(resultType));
  return result;
}

Value Lowering::lowerScalar(OpBuilder &b, Operation *op, ValueRange operands) {
  Location loc = op->getLoc();
  Type resultType = getElementTypeOrSelf(op->getResult(0).getType());
  auto floatOf = [](Value value) {
    return dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
  };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(
          [&](Operation *) {
            return lowerDivision(b, op, operands[0], operands[1]);
          })
      .Case<arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp>([&](Operation *) {
        return lowerShift(b, op, operands[0], operands[1]);
      })
      .Case<arith::FPToSIOp, arith::FPToUIOp>(
          [&](Operation *) { return lowerFloatToInt(b, op, operands[0]); })
      .Case<arith::SIToFPOp, arith::UIToFPOp>(
          [&](Operation *) { return lowerIntToFloat(b, op, operands[0]); })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](Operation *) {
        return convertFloat(b, loc, operands[0], floatOf(op->getOperand(0)),
                            floatOf(op->getResult(0)));
      })
      .Case([&](tt::FpToFpOp convert) {
        bool towardZero = convert.getRounding() == tt::RoundingMode::RTZ;
        return convertFloat(b, loc, operands[0], floatOf(convert.getSrc()),
                            floatOf(convert.getResult()), towardZero);
      })
      .Case([&](arith::ConstantOp constant) -> Value {
        auto number = dyn_cast<FloatAttr>(constant.getValue());
        if (!number || !getFloat8(resultType))
          return cloneScalar(*this, b, op, operands);
        return arith::ConstantOp::create(
            b, loc,
            b.getIntegerAttr(b.getI8Type(),
                             number.getValue().bitcastToAPInt()));
      })
      .Case([&](ub::PoisonOp) {
        return getPoison(b, loc, getScalarType(resultType));
      })
      .Case([&](math::FmaOp) {
        FloatType type = floatOf(op->getResult(0));
        return type == getComputeType(type) ||
                       autodiff::mutation::isMade(
                           "cpu-fma:narrow ones are rounded twice")
                   ? cloneScalar(*this, b, op, operands)
                   : multiplyAddNarrow(b, loc, operands, type);
      })
      .Case([&](tt::MulhiUIOp) {
        return lowerMulHi(b, loc, operands[0], operands[1]);
      })
      .Case([&](tt::ClampFOp clamp) { return lowerClamp(b, clamp, operands); })
      .Case([&](tt::PreciseSqrtOp) -> Value {
        auto type = cast<FloatType>(operands[0].getType());
        Value wide =
            convertFloat(b, loc, operands[0], type, getComputeType(type));
        return convertFloat(b, loc, math::SqrtOp::create(b, loc, wide),
                            getComputeType(type), type);
      })
      .Case<tt::PreciseDivFOp, tt::ApproxDivFOp>([&](Operation *) -> Value {
        auto type = cast<FloatType>(operands[0].getType());
        FloatType wide = getComputeType(type);
        Value quotient = arith::DivFOp::create(
            b, loc, convertFloat(b, loc, operands[0], type, wide),
            convertFloat(b, loc, operands[1], type, wide));
        return convertFloat(b, loc, quotient, wide, type);
      })
      .Case<tt::BitcastOp, arith::BitcastOp>([&](Operation *) {
        return lowerBitcast(b, loc, operands[0], getScalarType(resultType));
      })
      .Case([&](tt::IntToPtrOp) -> Value {
        return LLVM::IntToPtrOp::create(b, loc, getScalarType(resultType),
                                        operands[0]);
      })
      .Case([&](tt::PtrToIntOp) -> Value {
        return LLVM::PtrToIntOp::create(b, loc, resultType, operands[0]);
      })
      .Case([&](tt::AddPtrOp) -> Value {
        Value step = operands[1];
        if (!step.getType().isInteger(64))
          step = arith::ExtSIOp::create(b, loc, b.getI64Type(), step);
        Value size =
            makeInteger(b, loc, step.getType(), getPointeeSize(resultType));
        step = arith::MulIOp::create(b, loc, step, size);
        return LLVM::GEPOp::create(b, loc, operands[0].getType(), b.getI8Type(),
                                   operands[0], ArrayRef<LLVM::GEPArg>{step});
      })
      .Case([&](tt::ExternElementwiseOp external) -> Value {
        Value result = lowerLibdevice(*this, b, external, operands);
        if (result)
          return result;
        fail(op, "'" + external.getSymbol() + "'");
        return getPoison(b, loc, getScalarType(resultType));
      })
      .Case([&](tt::ElementwiseInlineAsmOp assembly) -> Value {
        Value result = lowerInlineAsm(*this, b, assembly, operands);
        if (result)
          return result;
        fail(op, "\"" + assembly.getAsmString().trim() + "\"");
        return getPoison(b, loc, getScalarType(resultType));
      })
      .Default([&](Operation *) -> Value {
        if (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
          return cloneScalar(*this, b, op, operands);
        fail(op);
        return getPoison(b, loc, getScalarType(resultType));
      });
}
