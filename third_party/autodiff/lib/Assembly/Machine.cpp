//===- Machine.cpp - Registers that hold tiles ----------------------------===//
#include "autodiff/Assembly/Machine.h"

#include "autodiff/Support/Mutation.h"
#include "autodiff/Support/PtxInstruction.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/StringSwitch.h"

#include <set>

#include <set>

using namespace mlir;
using namespace mlir::autodiff;
using namespace mlir::autodiff::ptx;
using llvm::Error;
using llvm::Expected;

Lanes Field::all() const {
  Lanes result = 0;
  for (Lanes bit : lanes)
    result |= bit;
  return result;
}

Field mlir::autodiff::ptx::makeField(Value value, unsigned width, Lanes lanes) {
  return Field{value, SmallVector<Lanes, 32>(width, lanes)};
}

Machine::Machine(const Program &program, Emitter &emitter)
    : e(emitter), program(program) {
  for (const Register &reg : program.registers)
    registers.push_back(
        Content{{makeField(Value(), reg.width, 0)}, std::nullopt});
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

Expected<Field> Machine::slice(ArrayRef<Field> fields, unsigned low,
                               unsigned width) {
  Field result{Value(), {}};
  unsigned start = 0;
  bool isUnset = false;
  for (const Field &field : fields) {
    unsigned end = start + field.width();
    unsigned from = std::max(start, low), to = std::min(end, low + width);
    if (start == low && field.width() == width)
      return field;
    if (from < to && field.value) {
      Value bits = e.toInteger(field.value);
      // A bit that is known depends on nothing.
      llvm::KnownBits known = e.known(bits);
      for (unsigned bit = from - start; bit < to - start; ++bit)
        result.lanes.push_back(
            known.Zero[bit] || known.One[bit] ? 0 : field.lanes[bit]);
      // Bits behind this part are beyond the result, and cut off.
      Value part = e.shrUnsigned(bits, from - start);
      part = e.shl(e.resize(part, width), from - low);
      result.value = result.value ? e.ori(result.value, part) : part;
    } else if (from < to) {
      result.lanes.append(to - from, 0);
      isUnset = true;
    }
    start = end;
  }
  if (result.width() != width)
    return makeError("operands have not the width of the instruction");
  if (isUnset && result.value)
    return makeError("bits are read that nothing has set");
  if (result.value && Emitter::getConstant(result.value))
    return makeField(result.value, width, 0);
  return result;
}

Error Machine::align(Fields &a, Fields &b) {
  std::set<unsigned> ends;
  unsigned widthA = 0, widthB = 0;
  for (const Field &field : a)
    ends.insert(widthA += field.width());
  for (const Field &field : b)
    ends.insert(widthB += field.width());
  if (widthA != widthB)
    return makeError("operands have not the width of the instruction");
  auto divide = [&](Fields &fields) -> Error {
    Fields parts;
    unsigned low = 0;
    for (unsigned end : ends) {
      Expected<Field> part = slice(fields, low, end - low);
      if (!part)
        return part.takeError();
      parts.push_back(std::move(*part));
      low = end;
    }
    fields = std::move(parts);
    return Error::success();
  };
  if (Error error = divide(a))
    return error;
  return divide(b);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

unsigned Machine::widthOf(const Operand &operand) const {
  if (operand.kind == Operand::Kind::Register)
    return program.registers[operand.index].width;
  unsigned width = 0;
  for (const Operand &part : operand.parts)
    width += widthOf(part);
  return width;
}

bool Machine::isPredicate(const Operand &operand) const {
  return operand.kind == Operand::Kind::Register &&
         program.registers[operand.index].isPredicate;
}

std::optional<uint64_t> Machine::getImmediate(const Operand &operand) {
  if (operand.kind != Operand::Kind::Integer)
    return std::nullopt;
  return operand.bits;
}

/// Whether no field has been written.
static bool isUnset(ArrayRef<Field> fields) {
  return llvm::none_of(fields,
                       [](const Field &field) { return bool(field.value); });
}

/// A register that has only been set under a guard may only be read under it.
Error Machine::checkDefined(const Content &content, StringRef name) {
  if (isUnset(content.fields))
    return makeError("'" + name + "' is read, which nothing has set");
  if (content.only && !(guard && *guard == *content.only))
    return makeError("'" + name + "' is read, which may not be set");
  return Error::success();
}

/// A value as the current guard sees it: of a selection by the guard's
/// condition, the side that is taken.
Value Machine::chosen(Value value) const {
  while (guard && value) {
    auto select = value.getDefiningOp<arith::SelectOp>();
    if (!select || select.getCondition() != guard->condition)
      break;
    value = guard->isNegated ? select.getFalseValue() : select.getTrueValue();
  }
  return value;
}

Expected<Fields> Machine::readFields(const Operand &operand, unsigned width) {
  switch (operand.kind) {
  case Operand::Kind::FloatBits:
    if (operand.width != width)
      return makeError("a float of another width");
    [[fallthrough]];
  case Operand::Kind::Integer:
    return Fields{makeField(e.constant(width, operand.bits), width, 0)};
  case Operand::Kind::Register: {
    if (isPredicate(operand))
      return makeError("a predicate is no number");
    const Content &content = registers[operand.index];
    if (Error error =
            checkDefined(content, program.registers[operand.index].name))
      return error;
    Fields fields = content.fields;
    for (Field &field : fields)
      field.value = chosen(field.value);
    if (widthOf(operand) == width)
      return fields;
    Expected<Field> low = slice(fields, 0, width);
    if (!low)
      return low.takeError();
    return Fields{std::move(*low)};
  }
  case Operand::Kind::Vector: {
    Fields fields;
    unsigned total = 0;
    for (const Operand &part : operand.parts) {
      // An immediate takes its share of the bits.
      unsigned share = part.kind == Operand::Kind::Register
                           ? widthOf(part)
                           : width / operand.parts.size();
      Expected<Fields> read = readFields(part, share);
      if (!read)
        return read.takeError();
      fields.append(read->begin(), read->end());
      total += share;
    }
    if (total != width)
      return makeError("operands have not the width of the instruction");
    return fields;
  }
  case Operand::Kind::Float:
    return makeError("a decimal number is no bits");
  case Operand::Kind::Pair:
  case Operand::Kind::Sink:
    return makeError("an operand is missing");
  }
  llvm_unreachable("all kinds are covered");
}

Expected<Field> Machine::readInteger(const Operand &operand, unsigned width) {
  Expected<Fields> fields = readFields(operand, width);
  if (!fields)
    return fields.takeError();
  Expected<Field> field = slice(*fields, 0, width);
  if (!field)
    return field.takeError();
  if (!field->value)
    return makeError("bits are read that nothing has set");
  field->value = e.toInteger(field->value);
  return field;
}

Expected<Field> Machine::readFloat(const Operand &operand, FloatType type,
                                   unsigned part) {
  unsigned width = type.getWidth();
  if (operand.kind == Operand::Kind::Float) {
    if (width < 32)
      return makeError("a decimal number of 16 bits");
    return makeField(e.constant(type, operand.number), width, 0);
  }
  // Immediate floats are in double precision, however they are written.
  if (operand.kind == Operand::Kind::FloatBits && operand.width != width &&
      width >= 32) {
    bool isSingle = operand.width == 32;
    APFloat number(isSingle ? APFloat::IEEEsingle() : APFloat::IEEEdouble(),
                   APInt(operand.width, operand.bits));
    return makeField(e.constant(type, number), width, 0);
  }
  if (operand.kind == Operand::Kind::Integer && width >= 32)
    return makeError("an integer is given for a float");
  unsigned total =
      operand.kind == Operand::Kind::Register ? widthOf(operand) : width;
  unsigned low = total == width ? 0 : part * width;
  if (total < low + width || total % width)
    return makeError("operands have not the width of the instruction");
  Expected<Fields> fields = readFields(operand, total);
  if (!fields)
    return fields.takeError();
  Expected<Field> field = slice(*fields, low, width);
  if (!field)
    return field.takeError();
  if (!field->value)
    return makeError("bits are read that nothing has set");
  field->value = e.toFloat(field->value, type);
  return field;
}

Expected<Field> Machine::readPredicate(const Operand &operand) {
  if (!isPredicate(operand))
    return makeError("a predicate is expected");
  const Content &content = registers[operand.index];
  if (Error error =
          checkDefined(content, program.registers[operand.index].name))
    return error;
  Field field = content.fields[0];
  field.value = chosen(field.value);
  if (operand.isNegated)
    field.value = e.noti(field.value);
  return field;
}

Expected<Guard> Machine::readGuard(const Operand &operand) {
  Expected<Field> field = readPredicate(operand);
  if (!field)
    return field.takeError();
  Guard result{field->value, false, field->all()};
  // p and `not p` have the same condition.
  while (auto inverted = result.condition.getDefiningOp<arith::XOrIOp>()) {
    std::optional<APInt> bits = Emitter::getConstant(inverted.getRhs());
    if (!bits || !bits->isAllOnes())
      break;
    result.condition = inverted.getLhs();
    result.isNegated = !result.isNegated;
  }
  return result;
}

Expected<Field> Machine::readBits(unsigned index, unsigned low,
                                  unsigned width) {
  const Content &content = registers[index];
  StringRef name = program.registers[index].name;
  if (Error error = checkDefined(content, name))
    return error;
  Expected<Field> field = slice(content.fields, low, width);
  if (field && !field->value)
    return makeError("'" + name + "' is not set as a whole");
  return field;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Error Machine::write(const Operand &operand, Fields fields) {
  if (operand.kind == Operand::Kind::Sink)
    return Error::success();
  if (operand.kind == Operand::Kind::Vector) {
    unsigned total = 0, low = 0;
    for (const Field &field : fields)
      total += field.width();
    for (const Operand &part : operand.parts) {
      unsigned width = total / operand.parts.size();
      Expected<Field> field = slice(fields, low, width);
      if (!field)
        return field.takeError();
      if (Error error = write(part, std::move(*field)))
        return error;
      low += width;
    }
    return Error::success();
  }
  if (operand.kind != Operand::Kind::Register)
    return makeError("the result goes to no register");
  return merge(operand.index, std::move(fields));
}

/// Writes fields to a register; where the guard is false, old content stays.
Error Machine::merge(unsigned index, Fields fields) {
  StringRef name = program.registers[index].name;
  unsigned width = 0;
  for (const Field &field : fields)
    width += field.width();
  if (width != program.registers[index].width)
    return makeError("'" + name + "' has not the width of the result");

  Content &content = registers[index];
  if (!guard || isUnset(content.fields) ||
      (content.only && *content.only == *guard)) {
    content = Content{std::move(fields), guard};
    return Error::success();
  }
  Guard other = *guard;
  other.isNegated = !other.isNegated;
  if (content.only && !(*content.only == other))
    return makeError("'" + name +
                     "' is set under guards that are no opposites");
  if (mutation::isMade("assembly:effects without their guard")) {
    content = Content{std::move(fields), std::nullopt};
    return Error::success();
  }
  Field condition = makeField(guard->condition, 1, guard->lanes);
  Expected<Fields> merged =
      guard->isNegated ? select(condition, content.fields, std::move(fields))
                       : select(condition, std::move(fields), content.fields);
  if (!merged)
    return merged.takeError();
  content = Content{std::move(*merged), std::nullopt};
  return Error::success();
}

Expected<Fields> Machine::select(const Field &condition, Fields a, Fields b) {
  if (Error error = align(a, b))
    return std::move(error);
  Fields selected;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    if (!x.value || !y.value)
      return makeError("bits are read that nothing has set");
    if (x.value.getType() != y.value.getType()) {
      x.value = e.toInteger(x.value);
      y.value = e.toInteger(y.value);
    }
    Field field{e.select(condition.value, x.value, y.value), {}};
    for (auto [first, second] : llvm::zip_equal(x.lanes, y.lanes))
      field.lanes.push_back(first | second | condition.all());
    selected.push_back(std::move(field));
  }
  return selected;
}

Error Machine::writePredicate(const Operand &operand, Field predicate) {
  if (operand.kind != Operand::Kind::Sink && !isPredicate(operand))
    return makeError("the result is a predicate");
  return write(operand, std::move(predicate));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Error Machine::execute(const Instruction &instruction) {
  Semantics semantics = findSemantics(instruction.opcode);
  if (!semantics)
    return makeError("it is not straight-line arithmetic");
  guard.reset();
  if (instruction.guard) {
    Expected<Guard> read = readGuard(*instruction.guard);
    if (!read)
      return read.takeError();
    if (std::optional<APInt> known = Emitter::getConstant(read->condition)) {
      if (known->isZero() != read->isNegated)
        return Error::success();
    } else {
      guard = std::move(*read);
    }
  }
  return semantics(*this, instruction);
}

Error Machine::run() {
  for (const Instruction &instruction : program.instructions)
    if (Error error = execute(instruction))
      return makeError("'" + instruction.name +
                       "': " + llvm::toString(std::move(error)));
  guard.reset();
  return Error::success();
}

/// The constraint letter for a register of this type.
static StringRef getConstraint(Type type) {
  if (type.isF32())
    return "f";
  if (type.isF64())
    return "d";
  switch (type.getIntOrFloatBitWidth()) {
  case 16:
    return "h";
  case 64:
    return "l";
  default:
    return "r";
  }
}

Expected<Value> Machine::emitInstruction(const Twine &name, Type result,
                                         ArrayRef<Value> operands,
                                         StringRef before) {
  std::string text = (name + " $0" + before).str();
  // A float of 19 bits is in a register of bits.
  std::string constraints =
      "=" +
      (StringRef(text).contains(".tf32.") ? "r" : getConstraint(result)).str();
  for (auto [number, operand] : llvm::enumerate(operands)) {
    text += ", $" + std::to_string(number + 1);
    constraints += "," + getConstraint(Emitter::elementOf(operand)).str();
  }
  Builder b(e.context());
  Value value = e.make<triton::ElementwiseInlineAsmOp>(
      result, operands,
      {b.getNamedAttr("asm_string", b.getStringAttr(text + ";")),
       b.getNamedAttr("constraints", b.getStringAttr(constraints)),
       b.getNamedAttr("pure", b.getBoolAttr(true)),
       b.getNamedAttr("packed_element", b.getI32IntegerAttr(1))});
  auto op = value.getDefiningOp<triton::ElementwiseInlineAsmOp>();
  if (!parsePtxInstruction(op))
    return makeError("no derivative is known for '" + name + "'");
  return value;
}

//===----------------------------------------------------------------------===//
// Opcodes
//===----------------------------------------------------------------------===//

/// These decide when launches start and wait; they do not change values.
static Error runLaunchControl(Machine &, const Instruction &) {
  return Error::success();
}

Semantics mlir::autodiff::ptx::findSemantics(StringRef opcode) {
  return llvm::StringSwitch<Semantics>(opcode)
      .Cases({"add", "sub", "mul", "mad", "fma", "div", "min", "max", "abs",
              "neg", "rem", "popc", "clz", "brev"},
             runInteger)
      .Cases({"copysign", "cos", "ex2", "lg2", "rcp", "rsqrt", "sin", "sqrt",
              "tanh"},
             runFloat)
      .Cases({"and", "or", "xor", "not", "cnot", "lop3", "shl", "shr", "shf",
              "prmt", "bfe", "bfi"},
             runBits)
      .Case("cvt", runConversion)
      .Case("mov", runMove)
      .Cases({"setp", "set", "testp"}, runComparison)
      .Cases({"selp", "slct"}, runSelection)
      .Case("griddepcontrol", runLaunchControl)
      .Default(nullptr);
}

FloatType mlir::autodiff::ptx::getFloatType(Emitter &e, StringRef modifier) {
  return llvm::StringSwitch<FloatType>(modifier)
      .Cases({"f16", "f16x2"}, e.f16())
      .Cases({"bf16", "bf16x2"}, e.bf16())
      .Cases({"f32", "f32x2"}, e.f32())
      .Case("f64", e.f64())
      .Default(FloatType());
}

unsigned mlir::autodiff::ptx::countParts(StringRef modifier) {
  return modifier.ends_with("x2") ? 2 : 1;
}

std::optional<IntegerKind>
mlir::autodiff::ptx::getIntegerKind(StringRef modifier) {
  bool isSigned = modifier.consume_front("s");
  IntegerKind kind{0, isSigned};
  if ((!isSigned && !modifier.consume_front("u")) ||
      modifier.getAsInteger(10, kind.width) ||
      !llvm::is_contained({8u, 16u, 32u, 64u}, kind.width))
    return std::nullopt;
  return kind;
}

Error mlir::autodiff::ptx::checkSignature(const Instruction &instruction,
                                          unsigned count,
                                          ArrayRef<StringRef> known,
                                          unsigned types) {
  if (instruction.modifiers.size() < types)
    return makeError("its type is missing");
  if (instruction.operands.size() != count)
    return makeError("it has another number of operands");
  for (StringRef modifier : ArrayRef(instruction.modifiers).drop_back(types))
    if (!llvm::is_contained(known, modifier))
      return makeError("modifier '." + modifier + "'");
  return Error::success();
}
