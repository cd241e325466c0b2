//===- Bits.cpp - Instructions on bits, and predicates --------------------===//
#include "autodiff/Assembly/Machine.h"

#include <vector>

using namespace mlir;
using namespace mlir::autodiff::ptx;
using arith::CmpIPredicate;
using llvm::Error;
using llvm::Expected;

/// The width of "b32", "u32" or "s32".
static std::optional<unsigned> getWidth(StringRef suffix) {
  unsigned width;
  if (suffix.empty() || !StringRef("bus").contains(suffix[0]) ||
      suffix.drop_front().getAsInteger(10, width) ||
      !llvm::is_contained({16u, 32u, 64u}, width))
    return std::nullopt;
  return width;
}

//===----------------------------------------------------------------------===//
// Bit by bit
//===----------------------------------------------------------------------===//

/// A function of two bits by its table: bit 2·a + b is its value at a, b.
static Value combine(Emitter &e, Value a, Value b, unsigned table) {
  unsigned width = Emitter::widthOf(a);
  switch (table) {
  case 0b0000:
    return e.constant(width, 0);
  case 0b1111:
    return e.noti(e.constant(width, 0));
  case 0b1100:
    return a;
  case 0b1010:
    return b;
  case 0b0110:
    return e.xori(a, b);
  case 0b1000:
    return e.andi(a, b);
  case 0b1110:
    return e.ori(a, b);
  case 0b0100:
    return e.andi(a, e.noti(b));
  case 0b0010:
    return e.andi(e.noti(a), b);
  default:
    return e.noti(combine(e, a, b, 0b1111 ^ table));
  }
}

/// A function of three bits, bit 4·a + 2·b + c of its table.
static Value combine(Emitter &e, Value a, Value b, Value c, unsigned table) {
  unsigned one = table >> 4, zero = table & 0b1111;
  if (one == zero)
    return combine(e, b, c, one);
  Value whenOne = combine(e, b, c, one), whenZero = combine(e, b, c, zero);
  if (one == (0b1111 ^ zero))
    return e.xori(a, whenZero);
  if (one == 0b1111)
    return e.ori(a, whenZero);
  if (zero == 0b1111)
    return e.ori(e.noti(a), whenOne);
  return e.ori(e.andi(a, whenOne), e.andi(e.noti(a), whenZero));
}

/// The elements that a bit of the result depends on, given the known bits of
/// the operands: none where the result is known.
static Field combineFields(Emitter &e, ArrayRef<Field> fields, unsigned table) {
  SmallVector<Value> x;
  for (const Field &field : fields)
    x.push_back(e.toInteger(field.value));
  Value value = fields.size() == 3 ? combine(e, x[0], x[1], x[2], table)
                                   : combine(e, x[0], x[1], table);
  Field result = makeField(value, fields[0].width(), 0);
  for (unsigned bit = 0; bit < result.width(); ++bit) {
    // An operand counts if the result may depend on it, given the others.
    for (unsigned which = 0; which < fields.size(); ++which) {
      bool matters = false;
      for (unsigned row = 0; row < (1u << fields.size()); ++row) {
        bool isPossible = true;
        for (unsigned i = 0; i < fields.size(); ++i) {
          llvm::KnownBits known = e.known(x[i]);
          bool isOne = row >> (fields.size() - 1 - i) & 1;
          isPossible &= !(isOne ? known.Zero : known.One)[bit];
        }
        unsigned other = row ^ (1u << (fields.size() - 1 - which));
        if (isPossible && (table >> row & 1) != (table >> other & 1))
          matters = true;
      }
      if (matters)
        result.lanes[bit] |= fields[which].lanes[bit];
    }
  }
  return result;
}

static Error runLogic(Machine &machine, const Instruction &instruction,
                      unsigned table, unsigned count) {
  ArrayRef<Operand> operands = instruction.operands;
  if (instruction.lastModifier() == "pred") {
    SmallVector<Field> fields;
    for (unsigned i = 1; i <= count; ++i) {
      Expected<Field> field = machine.readPredicate(operands[i]);
      if (!field)
        return field.takeError();
      fields.push_back(std::move(*field));
    }
    return machine.writePredicate(operands[0],
                                  combineFields(machine.e, fields, table));
  }
  std::optional<unsigned> width = getWidth(instruction.lastModifier());
  if (!width)
    return makeError("it is not known for '." + instruction.lastModifier() +
                     "'");
  std::vector<Fields> read;
  for (unsigned i = 1; i <= count; ++i) {
    Expected<Fields> fields = machine.readFields(operands[i], *width);
    if (!fields)
      return fields.takeError();
    read.push_back(std::move(*fields));
  }
  for (unsigned i = 1; i < count; ++i)
    if (Error error = machine.align(read[0], read[i]))
      return error;
  // The first one is now split wherever any of them is.
  for (unsigned i = 1; i + 1 < count; ++i)
    if (Error error = machine.align(read[0], read[i]))
      return error;
  Fields results;
  for (unsigned part = 0; part < read[0].size(); ++part) {
    SmallVector<Field> fields;
    for (Fields &of : read) {
      if (!of[part].value)
        return makeError("bits are read that nothing has set");
      fields.push_back(of[part]);
    }
    results.push_back(combineFields(machine.e, fields, table));
  }
  return machine.write(operands[0], std::move(results));
}

/// "not" and "cnot".
static Error runNot(Machine &machine, const Instruction &instruction) {
  if (Error error = checkSignature(instruction, 2, {}))
    return error;
  if (instruction.lastModifier() == "pred") {
    Expected<Field> field = machine.readPredicate(instruction.operands[1]);
    if (!field)
      return field.takeError();
    field->value = machine.e.noti(field->value);
    return machine.writePredicate(instruction.operands[0], std::move(*field));
  }
  std::optional<unsigned> width = getWidth(instruction.lastModifier());
  if (!width)
    return makeError("it is not known for '." + instruction.lastModifier() +
                     "'");
  Expected<Fields> fields = machine.readFields(instruction.operands[1], *width);
  if (!fields)
    return fields.takeError();
  Emitter &e = machine.e;
  if (instruction.opcode == "cnot") {
    Expected<Field> whole =
        machine.readInteger(instruction.operands[1], *width);
    if (!whole)
      return whole.takeError();
    Value isZero =
        e.compare(CmpIPredicate::eq, whole->value, e.constant(*width, 0));
    return machine.write(
        instruction.operands[0],
        makeField(e.resize(isZero, *width), *width, whole->all()));
  }
  for (Field &field : *fields) {
    if (!field.value)
      return makeError("bits are read that nothing has set");
    field.value = e.noti(e.toInteger(field.value));
  }
  return machine.write(instruction.operands[0], std::move(*fields));
}

//===----------------------------------------------------------------------===//
// Shifts
//===----------------------------------------------------------------------===//

/// All bits shifted up, or down, by a number of places; zeros are shifted in.
static Expected<Fields> moveBits(Machine &machine, Fields fields,
                                 unsigned width, uint64_t places, bool isUp) {
  unsigned zeros = std::min<uint64_t>(places, width);
  if (!zeros)
    return fields;
  Field zero = makeField(machine.e.constant(zeros, 0), zeros, 0);
  Fields extended = fields;
  extended.insert(isUp ? extended.begin() : extended.end(), zero);
  Fields moved;
  unsigned low = isUp ? 0 : zeros;
  for (const Field &field : fields) {
    Expected<Field> part = machine.slice(extended, low, field.width());
    if (!part)
      return part.takeError();
    if (!part->value)
      return makeError("bits are read that nothing has set");
    moved.push_back(std::move(*part));
    low += field.width();
  }
  return moved;
}

static Error runShift(Machine &machine, const Instruction &instruction) {
  std::optional<unsigned> width = getWidth(instruction.lastModifier());
  if (!width)
    return makeError("it is not known for '." + instruction.lastModifier() +
                     "'");
  if (Error error = checkSignature(instruction, 3, {}))
    return error;
  ArrayRef<Operand> operands = instruction.operands;
  Emitter &e = machine.e;
  bool isUp = instruction.opcode == "shl";
  bool isSigned = !isUp && instruction.lastModifier().starts_with("s");
  std::optional<uint64_t> places = Machine::getImmediate(operands[2]);
  if (places && !isSigned) {
    Expected<Fields> fields = machine.readFields(operands[1], *width);
    if (!fields)
      return fields.takeError();
    Expected<Fields> moved = moveBits(machine, std::move(*fields), *width,
                                      *places & 0xffffffff, isUp);
    if (!moved)
      return moved.takeError();
    return machine.write(operands[0], std::move(*moved));
  }
  Expected<Field> x = machine.readInteger(operands[1], *width);
  if (!x)
    return x.takeError();
  Expected<Field> by = machine.readInteger(operands[2], 32);
  if (!by)
    return by.takeError();
  Lanes lanes = x->all() | by->all();
  // Larger amounts shift out all bits, too; processors differ there.
  Value last = e.constant(32, *width - 1);
  Value amount = e.resize(e.map<arith::MinUIOp>(by->value, last), *width);
  Value value = isUp       ? e.map<arith::ShLIOp>(x->value, amount)
                : isSigned ? e.map<arith::ShRSIOp>(x->value, amount)
                           : e.map<arith::ShRUIOp>(x->value, amount);
  if (!isSigned)
    value = e.select(e.compare(CmpIPredicate::ule, by->value, last), value,
                     e.constant(*width, 0));
  return machine.write(operands[0], makeField(value, *width, lanes));
}

/// "shf": shifts two registers as one.
static Error runFunnelShift(Machine &machine, const Instruction &instruction) {
  if (Error error = checkSignature(instruction, 4, {"l", "r", "wrap", "clamp"}))
    return error;
  Emitter &e = machine.e;
  bool wraps = instruction.has("wrap"), isUp = instruction.has("l");
  if (wraps == instruction.has("clamp") || isUp == instruction.has("r") ||
      instruction.lastModifier() != "b32")
    return makeError("its modifiers are not known");
  SmallVector<Value> x;
  Lanes lanes = 0;
  for (const Operand &operand : ArrayRef(instruction.operands).drop_front()) {
    Expected<Field> field = machine.readInteger(operand, 32);
    if (!field)
      return field.takeError();
    x.push_back(field->value);
    lanes |= field->all();
  }
  Value both = e.ori(e.resize(x[0], 64), e.shl(e.resize(x[1], 64), 32));
  Value amount =
      e.resize(wraps ? e.andi(x[2], e.constant(32, 31))
                     : e.map<arith::MinUIOp>(x[2], e.constant(32, 32)),
               64);
  Value moved = isUp ? e.shrUnsigned(e.map<arith::ShLIOp>(both, amount), 32)
                     : e.map<arith::ShRUIOp>(both, amount);
  return machine.write(instruction.operands[0],
                       makeField(e.resize(moved, 32), 32, lanes));
}

//===----------------------------------------------------------------------===//
// Bytes and bit fields
//===----------------------------------------------------------------------===//

/// "prmt.b32": picks bytes of two registers by the digits of a number.
static Error runPermute(Machine &machine, const Instruction &instruction) {
  if (Error error = checkSignature(instruction, 4, {}))
    return error;
  ArrayRef<Operand> operands = instruction.operands;
  std::optional<uint64_t> order = Machine::getImmediate(operands[3]);
  if (!order || instruction.lastModifier() != "b32")
    return makeError("the order of its bytes is not written out");
  Fields source, result;
  for (unsigned i : {1, 2}) {
    Expected<Fields> fields = machine.readFields(operands[i], 32);
    if (!fields)
      return fields.takeError();
    source.append(fields->begin(), fields->end());
  }
  for (unsigned place = 0; place < 4; ++place) {
    unsigned choice = *order >> (4 * place) & 0xf;
    Expected<Field> byte = machine.slice(source, 8 * (choice & 7), 8);
    if (!byte)
      return byte.takeError();
    // The sign of the byte, eight times.
    if (choice & 8) {
      if (!byte->value)
        return makeError("bits are read that nothing has set");
      byte->value = machine.e.shrSigned(machine.e.toInteger(byte->value), 7);
      byte->lanes.assign(8, byte->lanes[7]);
    }
    result.push_back(std::move(*byte));
  }
  return machine.write(operands[0], std::move(result));
}

/// "bfe" and "bfi" with immediate positions and lengths.
static Error runBitField(Machine &machine, const Instruction &instruction) {
  bool inserts = instruction.opcode == "bfi";
  if (Error error = checkSignature(instruction, inserts ? 5 : 4, {}))
    return error;
  ArrayRef<Operand> operands = instruction.operands;
  std::optional<unsigned> width = getWidth(instruction.lastModifier());
  std::optional<uint64_t> start = Machine::getImmediate(operands.end()[-2]);
  std::optional<uint64_t> count = Machine::getImmediate(operands.back());
  if (!width || *width == 16)
    return makeError("it is not known for '." + instruction.lastModifier() +
                     "'");
  if (!start || !count)
    return makeError("the place of the bits is not written out");
  // GPUs do not do there what the text of PTX's manual says.
  if (*start >= *width || *count > *width)
    return makeError("it takes bits from place " + Twine(*start) + " on, " +
                     Twine(*count) + " of them, of a register of " +
                     Twine(*width) + ", which GPUs do in ways of their own");
  unsigned low = *start, length = *count;
  Emitter &e = machine.e;
  Expected<Field> a = machine.readInteger(operands[1], *width);
  if (!a)
    return a.takeError();
  if (inserts) {
    Expected<Field> b = machine.readInteger(operands[2], *width);
    if (!b)
      return b.takeError();
    APInt mask(*width, 0);
    if (length)
      mask.setBits(low, std::min(low + length, *width));
    Value value = e.ori(e.andi(e.shl(a->value, low), e.constant(mask)),
                        e.andi(b->value, e.constant(~mask)));
    return machine.write(operands[0],
                         makeField(value, *width, a->all() | b->all()));
  }
  Value value;
  if (length == 0) {
    value = e.constant(*width, 0);
  } else if (instruction.lastModifier().starts_with("s")) {
    unsigned top = std::min(low + length, *width) - 1;
    unsigned up = *width - 1 - top;
    value = e.shrSigned(e.shl(a->value, up), up + low);
  } else {
    value = e.andi(e.shrUnsigned(a->value, low),
                   e.constant(APInt::getLowBitsSet(*width, length)));
  }
  return machine.write(operands[0], makeField(value, *width, a->all()));
}

Error mlir::autodiff::ptx::runBits(Machine &machine,
                                   const Instruction &instruction) {
  StringRef opcode = instruction.opcode;
  if (opcode == "not" || opcode == "cnot")
    return runNot(machine, instruction);
  if (opcode == "shl" || opcode == "shr")
    return runShift(machine, instruction);
  if (opcode == "shf")
    return runFunnelShift(machine, instruction);
  if (opcode == "prmt")
    return runPermute(machine, instruction);
  if (opcode == "bfe" || opcode == "bfi")
    return runBitField(machine, instruction);
  if (opcode == "lop3") {
    if (Error error = checkSignature(instruction, 5, {}))
      return error;
    std::optional<uint64_t> table =
        Machine::getImmediate(instruction.operands[4]);
    if (!table || *table > 0xff)
      return makeError("its table is not written out");
    return runLogic(machine, instruction, *table, 3);
  }
  if (Error error = checkSignature(instruction, 3, {}))
    return error;
  unsigned table = opcode == "and" ? 0b1000 : opcode == "or" ? 0b1110 : 0b0110;
  return runLogic(machine, instruction, table, 2);
}
