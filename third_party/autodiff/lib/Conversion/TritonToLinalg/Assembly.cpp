//===- Assembly.cpp - Single instructions of GPUs -------------------------===//
//
// As PTX defines them: rounding, subnormal numbers, and results that are
// special in spite of an approximation.
//
//===----------------------------------------------------------------------===//

#include "Libdevice.h"
#include "Numerics.h"

#include "autodiff/Support/PtxInstruction.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::autodiff;
using namespace mlir::autodiff::cpu;
using arith::CmpFPredicate;
using Rounding = PtxInstruction::Rounding;

static Value makeNumber(OpBuilder &b, Location loc, Type type,
                        const APFloat &number) {
  APFloat converted = number;
  bool losesInfo;
  converted.convert(cast<FloatType>(type).getFloatSemantics(),
                    APFloat::rmNearestTiesToEven, &losesInfo);
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, converted));
}

/// Flushes numbers smaller than the normal ones of `format` to zero, with their
/// sign.
static Value flush(OpBuilder &b, Location loc, Value x, FloatType format) {
  Value smallest =
      makeNumber(b, loc, x.getType(),
                 APFloat::getSmallestNormalized(format.getFloatSemantics()));
  Value zero = makeNumber(b, loc, x.getType(), APFloat(0.0));
  Value isSmall = arith::CmpFOp::create(
      b, loc, CmpFPredicate::OLT, math::AbsFOp::create(b, loc, x), smallest);
  Value signedZero = math::CopySignOp::create(b, loc, zero, x);
  return arith::SelectOp::create(b, loc, isSmall, signedZero, x);
}

/// Whether a product or fused sum was rounded up to the smallest normal number,
/// but with an unbounded exponent range would have stayed below it. GPUs flush
/// such a result.
static Value roundsUpToNormal(OpBuilder &b, Location loc, Value result,
                              ValueRange operands,
                              llvm::function_ref<Value(ValueRange)> compute) {
  FloatType type = cast<FloatType>(result.getType());
  auto number = [&](double value) {
    return makeNumber(b, loc, type, APFloat(value));
  };
  auto compare = [&](CmpFPredicate how, Value x, Value y) -> Value {
    return arith::CmpFOp::create(b, loc, how, x, y);
  };
  auto size = [&](Value x) -> Value { return math::AbsFOp::create(b, loc, x); };
  // The smaller factor can be scaled without overflow.
  SmallVector<Value> scaled(operands);
  Value isFirst =
      compare(CmpFPredicate::OLT, size(operands[0]), size(operands[1]));
  Value one = number(1.0), scale = number(0x1p64);
  auto enlarge = [&](Value &x, Value by) {
    x = arith::MulFOp::create(b, loc, x, by);
  };
  enlarge(scaled[0], arith::SelectOp::create(b, loc, isFirst, scale, one));
  enlarge(scaled[1], arith::SelectOp::create(b, loc, isFirst, one, scale));
  for (Value &addend : MutableArrayRef(scaled).drop_front(2))
    enlarge(addend, scale);
  return arith::AndIOp::create(
      b, loc, compare(CmpFPredicate::OEQ, size(result), number(0x1p-126)),
      compare(CmpFPredicate::OLT, size(compute(scaled)), number(0x1p-62)));
}

/// Rounds to the next number of `to` in a direction.
static Value convertDirected(OpBuilder &b, Location loc, Value x,
                             FloatType from, FloatType to, Rounding rounding) {
  Value near = convertFloat(b, loc, x, from, to, /*towardZero=*/true);
  if (rounding == Rounding::TowardZero)
    return near;
  // If zero was in the other direction, takes the next number away from zero.
  Value back = convertFloat(b, loc, near, to, from);
  Value missed = arith::CmpFOp::create(
      b, loc,
      rounding == Rounding::Up ? CmpFPredicate::OLT : CmpFPredicate::OGT, back,
      x);
  Type bits = b.getIntegerType(to.getWidth());
  Value pattern = arith::BitcastOp::create(b, loc, bits, near);
  Value one = arith::ConstantOp::create(b, loc, b.getIntegerAttr(bits, 1));
  Value further = arith::AddIOp::create(b, loc, pattern, one);
  return arith::BitcastOp::create(
      b, loc, to, arith::SelectOp::create(b, loc, missed, further, pattern));
}

/// Rounds to ten fractional bits; a tie goes away from zero, or to even.
static Value roundToTf32(OpBuilder &b, Location loc, Value x,
                         Rounding rounding) {
  constexpr int dropped = 13;
  Type i32 = b.getI32Type();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(i32, value));
  };
  Value bits = arith::BitcastOp::create(b, loc, i32, x);
  Value half;
  if (rounding == Rounding::TowardZero) {
    half = number(0);
  } else if (rounding == Rounding::NearestAway) {
    half = number(1 << (dropped - 1));
  } else {
    Value last = arith::AndIOp::create(
        b, loc, arith::ShRUIOp::create(b, loc, bits, number(dropped)),
        number(1));
    half =
        arith::AddIOp::create(b, loc, last, number((1 << (dropped - 1)) - 1));
  }
  Value rounded =
      arith::AndIOp::create(b, loc, arith::AddIOp::create(b, loc, bits, half),
                            number(-(1 << dropped)));
  // Infinity and NaN are not rounded.
  Value infinity =
      makeNumber(b, loc, x.getType(), APFloat::getInf(APFloat::IEEEsingle()));
  Value isFinite = arith::CmpFOp::create(
      b, loc, CmpFPredicate::OLT, math::AbsFOp::create(b, loc, x), infinity);
  return arith::SelectOp::create(
      b, loc, isFinite,
      arith::BitcastOp::create(b, loc, b.getF32Type(), rounded), x);
}

/// a · (1/b), where 1/b is flushed to zero for a large b.
static Value divideApproximately(OpBuilder &b, Location loc, Value quotient,
                                 Value x, Value y) {
  Value limit = makeNumber(b, loc, y.getType(), APFloat(0x1p126));
  Value infinity =
      makeNumber(b, loc, y.getType(), APFloat::getInf(APFloat::IEEEsingle()));
  Value size = math::AbsFOp::create(b, loc, y);
  Value isLarge = arith::AndIOp::create(
      b, loc, arith::CmpFOp::create(b, loc, CmpFPredicate::OGT, size, limit),
      arith::CmpFOp::create(b, loc, CmpFPredicate::OLT, size, infinity));
  Value zero = makeNumber(b, loc, y.getType(), APFloat(0.0));
  Value product = arith::MulFOp::create(b, loc, x, zero);
  return arith::SelectOp::create(b, loc, isLarge, product, quotient);
}

static Value lowerConversion(OpBuilder &b, Location loc,
                             const PtxInstruction &instruction, Value x,
                             FloatType from, FloatType to) {
  if (instruction.format == "tf32")
    return roundToTf32(b, loc, x, instruction.rounding);
  if (!instruction.format.empty())
    return {};
  if (instruction.rounding == Rounding::Nearest)
    return convertFloat(b, loc, x, from, to);
  return convertDirected(b, loc, x, from, to, instruction.rounding);
}

Value cpu::lowerInlineAsm(Lowering &lowering, OpBuilder &b,
                          triton::ElementwiseInlineAsmOp op,
                          ValueRange operands) {
  std::optional<PtxInstruction> instruction = parsePtxInstruction(op);
  if (!instruction)
    return {};
  Location loc = op.getLoc();
  auto type =
      dyn_cast<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
  auto from =
      dyn_cast<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType()));
  if (!type || !from)
    return {};
  if (instruction->function == "cvt")
    return lowerConversion(b, loc, *instruction, operands[0], from, type);
  FloatType computed = getComputeType(type);
  SmallVector<Value> wide;
  for (unsigned operand : instruction->operands) {
    Value value = convertFloat(b, loc, operands[operand], type, computed);
    wide.push_back(instruction->flushes ? flush(b, loc, value, type) : value);
  }
  StringRef name = instruction->function;
  auto compute = [&](ValueRange operands) {
    return instruction->rounding == Rounding::Nearest
               ? lowerFunction(lowering, b, loc, name, computed, operands)
               : lowerRounded(lowering, b, loc, name, instruction->rounding,
                              computed, operands);
  };
  Value value = compute(wide);
  if (value && instruction->isApproximate && name == "div")
    value = divideApproximately(b, loc, value, wide[0], wide[1]);
  if (value && instruction->flushes) {
    Value flushed = flush(b, loc, value, type);
    if (type.isF32() && (name == "mul" || name == "fma")) {
      Value zero = makeNumber(b, loc, type, APFloat(0.0));
      flushed = arith::SelectOp::create(
          b, loc, roundsUpToNormal(b, loc, value, wide, compute),
          math::CopySignOp::create(b, loc, zero, value), flushed);
    }
    value = flushed;
  }
  return value ? convertFloat(b, loc, value, computed, type) : Value();
}

Value cpu::lowerRounded(Lowering &lowering, OpBuilder &b, Location loc,
                        StringRef name, Rounding rounding, FloatType type,
                        ValueRange operands) {
  if (!llvm::is_contained({"add", "sub", "mul", "div", "fma", "sqrt", "rcp"},
                          name))
    return {};
  StringRef mode = rounding == Rounding::TowardZero ? "_rz"
                   : rounding == Rounding::Down     ? "_rd"
                                                    : "_ru";
  return lowering.callExternal(
      b, loc, ("tad_" + name + mode + (type.isF32() ? "f" : "")).str(), type,
      operands);
}
