//===- Integers.cpp - Instructions on integers ----------------------------===//
#include "autodiff/Assembly/Machine.h"

#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff::ptx;
using arith::CmpIPredicate;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Packed sums
//===----------------------------------------------------------------------===//

static APInt maximumOf(Emitter &e, const Field &field) {
  return e.known(e.toInteger(field.value)).getMaxValue();
}

/// Merges a field with those in front of it as long as `overflows` says that it
/// may carry into them.
static Error joinFields(Machine &machine, Fields &a, Fields &b,
                        llvm::function_ref<bool(Field, Field)> overflows) {
  if (Error error = machine.align(a, b))
    return error;
  for (unsigned i = 0; i + 1 < a.size();) {
    if (!a[i].value || !b[i].value)
      return makeError("bits are read that nothing has set");
    if (!overflows(a[i], b[i])) {
      ++i;
      continue;
    }
    for (Fields *fields : {&a, &b}) {
      unsigned width = (*fields)[i].width() + (*fields)[i + 1].width();
      Expected<Field> joined =
          machine.slice(ArrayRef(*fields).slice(i, 2), 0, width);
      if (!joined)
        return joined.takeError();
      (*fields)[i] = std::move(*joined);
      fields->erase(fields->begin() + i + 1);
    }
  }
  return Error::success();
}

static Expected<Fields> addFields(Machine &machine, Fields a, Fields b) {
  Emitter &e = machine.e;
  Error error = joinFields(machine, a, b, [&](Field x, Field y) {
    bool carries;
    (void)maximumOf(e, x).uadd_ov(maximumOf(e, y), carries);
    return carries;
  });
  if (error)
    return std::move(error);
  Fields sums;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    if (!x.value || !y.value)
      return makeError("bits are read that nothing has set");
    sums.push_back(makeField(e.add(e.toInteger(x.value), e.toInteger(y.value)),
                             x.width(), x.all() | y.all()));
  }
  return sums;
}

/// Multiplies every field by a constant, or merged fields where one may
/// overflow.
static Expected<Fields> multiplyFields(Machine &machine, Fields fields,
                                       uint64_t factor) {
  Emitter &e = machine.e;
  unsigned total = 0;
  bool overflows = false;
  for (const Field &field : fields) {
    if (!field.value)
      return makeError("bits are read that nothing has set");
    bool carries = !APInt(64, factor).isIntN(field.width());
    if (!carries)
      (void)maximumOf(e, field).umul_ov(APInt(field.width(), factor), carries);
    overflows |= carries;
    total += field.width();
  }
  if (overflows && fields.size() > 1) {
    Expected<Field> whole = machine.slice(fields, 0, total);
    if (!whole)
      return whole.takeError();
    fields = {*whole};
  }
  for (Field &field : fields)
    field = makeField(
        e.mul(e.toInteger(field.value), e.constant(field.width(), factor)),
        field.width(), field.all());
  return fields;
}

/// "add.u32" and "mad.lo.u32" with an immediate, which keep packed elements
/// apart.
static Error runPacked(Machine &machine, const Instruction &instruction,
                       unsigned width) {
  ArrayRef<Operand> operands = instruction.operands;
  Expected<Fields> a = machine.readFields(operands[1], width);
  if (!a)
    return a.takeError();
  if (instruction.opcode == "mad") {
    a = multiplyFields(machine, std::move(*a),
                       *Machine::getImmediate(operands[2]));
    if (!a)
      return a.takeError();
  }
  Expected<Fields> b = machine.readFields(operands.back(), width);
  if (!b)
    return b.takeError();
  Expected<Fields> sum = addFields(machine, std::move(*a), std::move(*b));
  if (!sum)
    return sum.takeError();
  return machine.write(operands[0], std::move(*sum));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static Value isNegative(Emitter &e, Value x) {
  return e.compare(CmpIPredicate::slt, x, e.constant(Emitter::widthOf(x), 0));
}

static Value negate(Emitter &e, Value x) {
  return e.sub(e.constant(Emitter::widthOf(x), 0), x);
}

/// The upper half of a product.
static Value multiplyHigh(Emitter &e, Value x, Value y, bool isSigned) {
  unsigned width = Emitter::widthOf(x);
  if (width <= 32) {
    Value product = e.mul(e.resize(x, 2 * width, isSigned),
                          e.resize(y, 2 * width, isSigned));
    return e.resize(e.shrUnsigned(product, width), width);
  }
  Value high = e.map<triton::MulhiUIOp>(x, y);
  if (!isSigned)
    return high;
  Value zero = e.constant(width, 0);
  high = e.sub(high, e.select(isNegative(e, x), y, zero));
  return e.sub(high, e.select(isNegative(e, y), x, zero));
}

/// A sum or difference that saturates.
static Value addSaturated(Emitter &e, Value x, Value y, bool subtracts) {
  unsigned width = Emitter::widthOf(x);
  Value a = e.resize(x, 2 * width, true), b = e.resize(y, 2 * width, true);
  Value sum = subtracts ? e.sub(a, b) : e.add(a, b);
  Value low = e.constant(APInt::getSignedMinValue(width).sext(2 * width));
  Value high = e.constant(APInt::getSignedMaxValue(width).sext(2 * width));
  sum = e.map<arith::MaxSIOp>(e.map<arith::MinSIOp>(sum, high), low);
  return e.resize(sum, width);
}

/// Counts ones, by sums in fields of two, four and eight bits.
static Value countOnes(Emitter &e, Value x) {
  unsigned width = Emitter::widthOf(x);
  auto repeated = [&](uint8_t byte) {
    return e.constant(APInt::getSplat(width, APInt(8, byte)));
  };
  x = e.sub(x, e.andi(e.shrUnsigned(x, 1), repeated(0x55)));
  x = e.add(e.andi(x, repeated(0x33)),
            e.andi(e.shrUnsigned(x, 2), repeated(0x33)));
  x = e.andi(e.add(x, e.shrUnsigned(x, 4)), repeated(0x0f));
  return e.shrUnsigned(e.mul(x, repeated(0x01)), width - 8);
}

static Value countLeadingZeros(Emitter &e, Value x) {
  unsigned width = Emitter::widthOf(x);
  for (unsigned step = 1; step < width; step *= 2)
    x = e.ori(x, e.shrUnsigned(x, step));
  return e.sub(e.constant(width, width), countOnes(e, x));
}

static Value reverseBits(Emitter &e, Value x) {
  unsigned width = Emitter::widthOf(x);
  for (unsigned step = 1; step < width; step *= 2) {
    APInt pattern =
        APInt::getSplat(width, APInt::getLowBitsSet(2 * step, step));
    Value low = e.constant(pattern);
    x = e.ori(e.andi(e.shrUnsigned(x, step), low), e.shl(e.andi(x, low), step));
  }
  return x;
}

/// The result of an opcode; null if modifiers ask for something else.
static Value compute(Emitter &e, const Instruction &instruction,
                     ArrayRef<Value> x, bool isSigned) {
  StringRef opcode = instruction.opcode;
  unsigned width = Emitter::widthOf(x[0]);
  bool saturates = instruction.has("sat");
  if (opcode == "add" || opcode == "sub") {
    if (saturates)
      return isSigned && width == 32
                 ? addSaturated(e, x[0], x[1], opcode == "sub")
                 : Value();
    return opcode == "add" ? e.add(x[0], x[1]) : e.sub(x[0], x[1]);
  }
  if (opcode == "mul" || opcode == "mad") {
    Value product;
    if (instruction.has("wide"))
      product = e.mul(e.resize(x[0], 2 * width, isSigned),
                      e.resize(x[1], 2 * width, isSigned));
    else if (instruction.has("hi"))
      product = multiplyHigh(e, x[0], x[1], isSigned);
    else if (instruction.has("lo"))
      product = e.mul(x[0], x[1]);
    if (!product || saturates)
      return {};
    return opcode == "mad" ? e.add(product, x[2]) : product;
  }
  if (saturates)
    return {};
  if (opcode == "div")
    return isSigned ? e.map<arith::DivSIOp>(x[0], x[1])
                    : e.map<arith::DivUIOp>(x[0], x[1]);
  if (opcode == "rem")
    return isSigned ? e.map<arith::RemSIOp>(x[0], x[1])
                    : e.map<arith::RemUIOp>(x[0], x[1]);
  if (opcode == "min")
    return isSigned ? e.map<arith::MinSIOp>(x[0], x[1])
                    : e.map<arith::MinUIOp>(x[0], x[1]);
  if (opcode == "max")
    return isSigned ? e.map<arith::MaxSIOp>(x[0], x[1])
                    : e.map<arith::MaxUIOp>(x[0], x[1]);
  if (opcode == "neg")
    return negate(e, x[0]);
  if (opcode == "abs")
    return e.select(isNegative(e, x[0]), negate(e, x[0]), x[0]);
  if (opcode == "popc")
    return e.resize(countOnes(e, x[0]), 32);
  if (opcode == "clz")
    return e.resize(countLeadingZeros(e, x[0]), 32);
  if (opcode == "brev")
    return reverseBits(e, x[0]);
  return {};
}

static unsigned countOperands(StringRef opcode) {
  if (opcode == "mad")
    return 3;
  return llvm::is_contained({"neg", "abs", "popc", "clz", "brev"}, opcode) ? 1
                                                                           : 2;
}

Error mlir::autodiff::ptx::runInteger(Machine &machine,
                                      const Instruction &instruction) {
  StringRef suffix = instruction.lastModifier(), opcode = instruction.opcode;
  if (getFloatType(machine.e, suffix))
    return runFloat(machine, instruction);
  bool countsBits = opcode == "popc" || opcode == "clz" || opcode == "brev";
  std::optional<IntegerKind> kind = getIntegerKind(suffix);
  if (countsBits && (suffix == "b32" || suffix == "b64"))
    kind = IntegerKind{suffix == "b32" ? 32u : 64u, false};
  if (!kind || opcode == "fma")
    return makeError("it is not known for '." + suffix + "'");
  ArrayRef<Operand> operands = instruction.operands;
  unsigned count = countOperands(opcode);
  if (Error error =
          checkSignature(instruction, count + 1, {"lo", "hi", "wide", "sat"}))
    return error;
  if ((opcode == "add" && !instruction.has("sat")) ||
      (opcode == "mad" && instruction.has("lo") && !instruction.has("sat") &&
       Machine::getImmediate(operands[2])))
    return runPacked(machine, instruction, kind->width);

  SmallVector<Value> x;
  Lanes lanes = 0;
  for (auto [number, operand] : llvm::enumerate(operands.drop_front())) {
    unsigned width = kind->width;
    if (number == 2 && instruction.has("wide"))
      width *= 2;
    Expected<Field> field = machine.readInteger(operand, width);
    if (!field)
      return field.takeError();
    x.push_back(field->value);
    lanes |= field->all();
  }
  Value value = compute(machine.e, instruction, x, kind->isSigned);
  if (!value)
    return makeError("its modifiers are not known for '." + suffix + "'");
  return machine.write(operands[0],
                       makeField(value, Emitter::widthOf(value), lanes));
}
