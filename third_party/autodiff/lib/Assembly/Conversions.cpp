//===- Conversions.cpp - The instruction cvt ------------------------------===//
#include "autodiff/Assembly/Machine.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff::ptx;
using arith::CmpFPredicate;
using llvm::Error;
using llvm::Expected;

/// The rounding modifier among `names` that an instruction has, or "".
static StringRef findRounding(const Instruction &instruction,
                              ArrayRef<StringRef> names) {
  for (StringRef name : names)
    if (instruction.has(name))
      return name;
  return "";
}

//===----------------------------------------------------------------------===//
// Between floats
//===----------------------------------------------------------------------===//

/// Limits x to the largest number of `type`, infinities included; NaN stays.
static Value limitTo(Emitter &e, Value x, FloatType type) {
  auto from = cast<FloatType>(Emitter::elementOf(x));
  APFloat largest = APFloat::getLargest(type.getFloatSemantics());
  Value high = e.constant(from, largest);
  largest.changeSign();
  Value low = e.constant(from, largest);
  x = e.select(e.compare(CmpFPredicate::OGT, x, high), high, x);
  return e.select(e.compare(CmpFPredicate::OLT, x, low), low, x);
}

/// Uses Triton's own conversion.
static Value convertTo(Emitter &e, Value x, FloatType type, bool towardZero) {
  using triton::RoundingMode;
  SmallVector<NamedAttribute> attributes;
  if (type.getWidth() < Emitter::widthOf(x))
    attributes.push_back(NamedAttribute(
        StringAttr::get(e.context(), "rounding"),
        triton::RoundingModeAttr::get(
            e.context(), towardZero ? RoundingMode::RTZ : RoundingMode::RTNE)));
  return e.make<triton::FpToFpOp>(type, x, attributes);
}

/// Rounds or extends x to `type`, as `instruction` says.
static Expected<Value> convertFloat(Machine &machine,
                                    const Instruction &instruction, Value x,
                                    FloatType type) {
  Emitter &e = machine.e;
  auto from = cast<FloatType>(Emitter::elementOf(x));
  StringRef rounding = findRounding(instruction, {"rn", "rz", "rm", "rp"});
  if (instruction.has("ftz") && from.isF32())
    x = flushSubnormal(e, x);
  if (instruction.has("satfinite"))
    x = limitTo(e, x, type);
  Value value = x;
  if (type.getWidth() > from.getWidth()) {
    value = e.make<arith::ExtFOp>(type, x);
  } else if (from != type && type.getWidth() == from.getWidth()) {
    // f16 and bf16 are converted through f32.
    return convertFloat(machine, instruction, e.make<arith::ExtFOp>(e.f32(), x),
                        type);
  } else if (from != type && (rounding == "rn" || rounding.empty())) {
    value = e.make<arith::TruncFOp>(type, x);
  } else if (from.isF32() && rounding == "rz") {
    value = convertTo(e, x, type, /*towardZero=*/true);
  } else if (from != type) {
    auto nameOf = [](FloatType type) -> StringRef {
      return type.isF64()    ? "f64"
             : type.isF32()  ? "f32"
             : type.isBF16() ? "bf16"
                             : "f16";
    };
    Expected<Value> emitted = machine.emitInstruction(
        "cvt." + rounding + "." + nameOf(type) + "." + nameOf(from), type, x);
    if (!emitted)
      return emitted;
    value = *emitted;
  }
  if (instruction.has("ftz") && type.isF32())
    value = flushSubnormal(e, value);
  if (instruction.has("sat"))
    value = saturate(e, value);
  if (instruction.has("relu"))
    value = rectify(e, value);
  return value;
}

/// Rounds to an integer that stays a float.
static Expected<Value> roundToWhole(Machine &machine, StringRef rounding,
                                    Value x) {
  Emitter &e = machine.e;
  auto type = cast<FloatType>(Emitter::elementOf(x));
  if (type.getWidth() < 32) {
    Expected<Value> wide =
        roundToWhole(machine, rounding, e.make<arith::ExtFOp>(e.f32(), x));
    if (!wide)
      return wide;
    return e.make<arith::TruncFOp>(type, *wide);
  }
  if (rounding == "rmi")
    return e.map<math::FloorOp>(x);
  if (rounding == "rpi")
    return e.map<math::CeilOp>(x);
  StringRef name = type.isF32() ? "f32" : "f64";
  return machine.emitInstruction("cvt." + rounding + "." + name + "." + name,
                                 type, x);
}

//===----------------------------------------------------------------------===//
// Between floats and integers
//===----------------------------------------------------------------------===//

/// Rounds as asked for, then limits to the range of the type. NaN becomes zero,
/// or the smallest number if either type has 64 bits.
static Expected<Value> convertToInteger(Machine &machine, StringRef rounding,
                                        Value x, IntegerKind kind) {
  Emitter &e = machine.e;
  bool isWide = kind.width == 64 || Emitter::elementOf(x).isF64();
  if (Emitter::widthOf(x) < 32)
    x = e.make<arith::ExtFOp>(e.f32(), x);
  auto type = cast<FloatType>(Emitter::elementOf(x));
  Value whole = x;
  if (rounding != "rzi") {
    Expected<Value> rounded = roundToWhole(machine, rounding, x);
    if (!rounded)
      return rounded;
    whole = *rounded;
  }
  // TTIR's conversion is undefined out of range. A comparison with NaN is
  // false.
  unsigned width = kind.width;
  APInt lowest = kind.isSigned ? APInt::getSignedMinValue(width)
                               : APInt::getMinValue(width);
  APInt highest = kind.isSigned ? APInt::getSignedMaxValue(width)
                                : APInt::getMaxValue(width);
  auto numberOf = [&](const APInt &bits) {
    APFloat number(type.getFloatSemantics());
    number.convertFromAPInt(bits, kind.isSigned, APFloat::rmTowardZero);
    return e.constant(type, number);
  };
  unsigned computed = std::max(width, 32u);
  Value isBelow = e.compare(CmpFPredicate::OLT, whole, numberOf(lowest));
  // The highest number plus one is a power of two.
  APFloat behind(type.getFloatSemantics());
  behind.convertFromAPInt(highest.zext(width + 1) + 1, /*IsSigned=*/false,
                          APFloat::rmTowardZero);
  Value isAbove =
      e.compare(CmpFPredicate::OGE, whole, e.constant(type, behind));
  Value isNan = e.compare(CmpFPredicate::UNO, x, x);
  Value isOutside = e.ori(e.ori(isBelow, isAbove), isNan);
  Value inside = e.select(isOutside, e.constant(type, 0.0), whole);
  Value number = kind.isSigned
                     ? e.make<arith::FPToSIOp>(e.integer(computed), inside)
                     : e.make<arith::FPToUIOp>(e.integer(computed), inside);
  number = e.resize(number, width);
  number = e.select(isBelow, e.constant(lowest), number);
  number = e.select(isAbove, e.constant(highest), number);
  return e.select(isNan,
                  e.constant(isWide ? APInt::getOneBitSet(width, width - 1)
                                    : APInt(width, 0)),
                  number);
}

static Expected<Value> convertFromInteger(Machine &machine,
                                          const Instruction &instruction,
                                          Value x, IntegerKind kind,
                                          FloatType type) {
  Emitter &e = machine.e;
  StringRef rounding = findRounding(instruction, {"rn", "rz", "rm", "rp"});
  Value value;
  if (rounding == "rn") {
    value = kind.isSigned ? e.make<arith::SIToFPOp>(type, x)
                          : e.make<arith::UIToFPOp>(type, x);
  } else if (kind.width <= 32) {
    // f64 represents the number exactly.
    Value wide = kind.isSigned ? e.make<arith::SIToFPOp>(e.f64(), x)
                               : e.make<arith::UIToFPOp>(e.f64(), x);
    return convertFloat(machine, instruction, wide, type);
  } else {
    return makeError("rounding '." + rounding + "' of 64 bits");
  }
  if (instruction.has("sat"))
    value = saturate(e, value);
  return value;
}

static Value convertInteger(Emitter &e, const Instruction &instruction, Value x,
                            IntegerKind from, IntegerKind to) {
  if (!instruction.has("sat"))
    return e.resize(x, to.width, from.isSigned);
  // Twice the bits are enough for all numbers of both types.
  unsigned width = 2 * std::max(from.width, to.width);
  Value wide = e.resize(x, width, from.isSigned);
  APInt low = to.isSigned ? APInt::getSignedMinValue(to.width).sext(width)
                          : APInt(width, 0);
  APInt high = to.isSigned ? APInt::getSignedMaxValue(to.width).zext(width)
                           : APInt::getMaxValue(to.width).zext(width);
  wide = e.map<arith::MaxSIOp>(wide, e.constant(low));
  return e.resize(e.map<arith::MinSIOp>(wide, e.constant(high)), to.width);
}

//===----------------------------------------------------------------------===//
// Formats of eight bits and less
//===----------------------------------------------------------------------===//

static FloatType getFloat8(Emitter &e, StringRef suffix) {
  if (suffix == "e4m3x2")
    return Float8E4M3FNType::get(e.context());
  if (suffix == "e5m2x2")
    return Float8E5M2Type::get(e.context());
  return {};
}

/// Four bits for a float: the sign and an index into 0, ½, 1, 1½, 2, 3, 4, 6. A
/// tie goes to the even index; NaN becomes the largest number.
static Value convertToFloat4(Emitter &e, Value x) {
  Value magnitude = e.map<math::AbsFOp>(x), place = e.constant(8, 0);
  const std::pair<double, CmpFPredicate> limits[] = {
      {0.25, CmpFPredicate::OGT}, {0.75, CmpFPredicate::OGE},
      {1.25, CmpFPredicate::OGT}, {1.75, CmpFPredicate::OGE},
      {2.5, CmpFPredicate::OGT},  {3.5, CmpFPredicate::OGE},
      {5.0, CmpFPredicate::OGT}};
  for (auto [limit, predicate] : limits)
    place = e.add(place, e.resize(e.compare(predicate, magnitude,
                                            e.constant(e.f32(), limit)),
                                  8));
  Value sign =
      e.andi(e.resize(e.shrUnsigned(e.toInteger(x), 28), 8), e.constant(8, 8));
  Value isNan = e.compare(CmpFPredicate::UNO, x, x);
  return e.select(isNan, e.constant(8, 7), e.ori(place, sign));
}

/// "cvt.rn.satfinite.e4m3x2.f32 d, a, b;": two floats side by side, b below.
static Error packFloats(Machine &machine, const Instruction &instruction,
                        StringRef to, StringRef from) {
  Emitter &e = machine.e;
  ArrayRef<Operand> operands = instruction.operands;
  bool isPair = countParts(from) == 2;
  FloatType type = getFloatType(e, from);
  if (!type || operands.size() != (isPair ? 2 : 3))
    return makeError("its form is not known");
  Fields results;
  for (unsigned part = 0; part < 2; ++part) {
    Expected<Field> x = isPair
                            ? machine.readFloat(operands[1], type, part)
                            : machine.readFloat(operands[part ? 1 : 2], type);
    if (!x)
      return x.takeError();
    if (to == "e2m1x2") {
      if (!type.isF32() || instruction.has("relu"))
        return makeError("its form is not known");
      results.push_back(makeField(convertToFloat4(e, x->value), 8, x->all()));
      continue;
    }
    Expected<Value> value = x->value;
    FloatType target = getFloat8(e, to);
    if (target) {
      Value limited = limitTo(e, x->value, target);
      if (instruction.has("relu"))
        limited = rectify(e, limited);
      value = convertTo(e, limited, target, /*towardZero=*/false);
    } else {
      target = getFloatType(e, to);
      value = convertFloat(machine, instruction, x->value, target);
    }
    if (!value)
      return value.takeError();
    results.push_back(makeField(*value, target.getWidth(), x->all()));
  }
  if (to == "e2m1x2") {
    Field both =
        makeField(e.ori(results[0].value, e.shl(results[1].value, 4)), 8, 0);
    for (unsigned bit = 0; bit < 8; ++bit)
      both.lanes[bit] = results[bit / 4].all();
    return machine.write(operands[0], std::move(both));
  }
  return machine.write(operands[0], std::move(results));
}

/// "cvt.rn.f16x2.e4m3x2 d, a;"
static Error unpackFloats(Machine &machine, const Instruction &instruction,
                          FloatType to, FloatType from) {
  Emitter &e = machine.e;
  if (instruction.operands.size() != 2)
    return makeError("its form is not known");
  Fields results;
  for (unsigned part = 0; part < 2; ++part) {
    Expected<Field> x = machine.readFloat(instruction.operands[1], from, part);
    if (!x)
      return x.takeError();
    Value value = convertTo(e, x->value, to, /*towardZero=*/false);
    if (instruction.has("relu"))
      value = rectify(e, value);
    results.push_back(makeField(value, to.getWidth(), x->all()));
  }
  return machine.write(instruction.operands[0], std::move(results));
}

//===----------------------------------------------------------------------===//
// Any conversion
//===----------------------------------------------------------------------===//

/// Converts to formats that are plain bits in TTIR, with the instruction
/// itself.
static Error runFormat(Machine &machine, const Instruction &instruction,
                       StringRef to) {
  Emitter &e = machine.e;
  ArrayRef<Operand> operands = instruction.operands;
  if (to == "tf32") {
    if (operands.size() != 2 || instruction.lastModifier() != "f32" ||
        instruction.has("relu") || instruction.has("satfinite"))
      return makeError("its form is not known");
    Expected<Field> x = machine.readFloat(operands[1], e.f32());
    if (!x)
      return x.takeError();
    Expected<Value> value =
        machine.emitInstruction(instruction.name, e.f32(), x->value);
    if (!value)
      return value.takeError();
    return machine.write(operands[0], makeField(*value, 32, x->all()));
  }
  // Two exponents are packed, and only the upper one is of a number.
  if (operands.size() != 3 || operands[1].kind != Operand::Kind::Float ||
      operands[1].number != 0)
    return makeError("its form is not known");
  Expected<Field> x = machine.readFloat(operands[2], e.f32());
  if (!x)
    return x.takeError();
  Expected<Value> value = machine.emitInstruction(
      instruction.name, e.integer(16), x->value, /*before=*/", 0.0");
  if (!value)
    return value.takeError();
  return machine.write(operands[0], makeField(*value, 16, x->all()));
}

/// The result of a conversion from one number to one number.
static Expected<Field> convertNumber(Machine &machine,
                                     const Instruction &instruction,
                                     StringRef to, StringRef from) {
  Emitter &e = machine.e;
  const Operand &source = instruction.operands[1];
  FloatType floatTo = getFloatType(e, to), floatFrom = getFloatType(e, from);
  std::optional<IntegerKind> integerTo = getIntegerKind(to),
                             integerFrom = getIntegerKind(from);
  if ((!floatTo && !integerTo) || (!floatFrom && !integerFrom) ||
      countParts(to) > 1 || countParts(from) > 1)
    return makeError("from '." + from + "' to '." + to + "'");
  // The register may be wider than the number.
  Expected<Field> x = floatFrom
                          ? machine.readFloat(source, floatFrom)
                          : machine.readInteger(source, integerFrom->width);
  if (!x)
    return x;
  StringRef whole = findRounding(instruction, {"rni", "rzi", "rmi", "rpi"});
  Expected<Value> value = x->value;
  if (floatFrom && floatTo) {
    if (!whole.empty()) {
      if (instruction.has("ftz") && floatFrom.isF32())
        value = flushSubnormal(e, x->value);
      value = roundToWhole(machine, whole, *value);
      if (value && instruction.has("sat"))
        value = saturate(e, *value);
      if (value && floatFrom != floatTo)
        value = convertFloat(machine, instruction, *value, floatTo);
    } else {
      value = convertFloat(machine, instruction, x->value, floatTo);
    }
  } else if (floatFrom) {
    if (whole.empty())
      return makeError("its rounding is missing");
    if (instruction.has("ftz") && floatFrom.isF32())
      value = flushSubnormal(e, x->value);
    value = convertToInteger(machine, whole, *value, *integerTo);
  } else if (floatTo) {
    value = convertFromInteger(machine, instruction, x->value, *integerFrom,
                               floatTo);
  } else {
    value = convertInteger(e, instruction, x->value, *integerFrom, *integerTo);
  }
  if (!value)
    return value.takeError();
  return makeField(*value, Emitter::widthOf(*value), x->all());
}

Error mlir::autodiff::ptx::runConversion(Machine &machine,
                                         const Instruction &instruction) {
  if (instruction.modifiers.size() < 2)
    return makeError("its types are missing");
  if (Error error =
          checkSignature(instruction, instruction.operands.size(),
                         {"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi",
                          "rpi", "ftz", "sat", "satfinite", "relu"},
                         2))
    return error;
  StringRef to = instruction.modifiers.end()[-2];
  StringRef from = instruction.lastModifier();
  Emitter &e = machine.e;
  if (to == "tf32" || to == "ue8m0x2")
    return runFormat(machine, instruction, to);
  if (to == "f16x2" && getFloat8(e, from))
    return unpackFloats(machine, instruction, e.f16(), getFloat8(e, from));
  bool packs = getFloat8(e, to) || to == "e2m1x2" ||
               (getFloatType(e, to) && countParts(to) == 2);
  if (packs) {
    if (!instruction.has("rn") && !instruction.has("rz"))
      return makeError("its rounding is missing");
    return packFloats(machine, instruction, to, from);
  }
  if (instruction.operands.size() != 2)
    return makeError("it has another number of operands");
  Expected<Field> result = convertNumber(machine, instruction, to, from);
  if (!result)
    return result.takeError();
  // The rest of a wider register gets the sign, or zeros.
  unsigned width = machine.widthOf(instruction.operands[0]);
  std::optional<IntegerKind> kind = getIntegerKind(to);
  if (kind && width > result->width()) {
    Lanes lanes = result->all();
    result =
        makeField(e.resize(result->value, width, kind->isSigned), width, lanes);
  }
  return machine.write(instruction.operands[0], std::move(*result));
}
