//===- Moves.cpp - Moves, comparisons and selections ----------------------===//
#include "autodiff/Assembly/Machine.h"

#include "autodiff/Support/Mutation.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::autodiff::ptx;
using arith::CmpFPredicate;
using arith::CmpIPredicate;
using llvm::Error;
using llvm::Expected;

/// The width of any type, packed ones included.
static std::optional<unsigned> getWidth(StringRef suffix) {
  unsigned parts = countParts(suffix);
  suffix.consume_back("x2");
  if (!suffix.consume_front("bf") && !suffix.consume_front("b") &&
      !suffix.consume_front("u") && !suffix.consume_front("s") &&
      !suffix.consume_front("f"))
    return std::nullopt;
  unsigned width;
  if (suffix.getAsInteger(10, width) ||
      !llvm::is_contained({8u, 16u, 32u, 64u}, width))
    return std::nullopt;
  return width * parts;
}

/// The fields of an operand of this type, immediates included.
static Expected<Fields> readAny(Machine &machine, const Operand &operand,
                                StringRef suffix) {
  std::optional<unsigned> width = getWidth(suffix);
  if (!width)
    return makeError("it is not known for '." + suffix + "'");
  FloatType type = getFloatType(machine.e, suffix);
  if (!type || operand.kind == Operand::Kind::Register ||
      operand.kind == Operand::Kind::Vector || countParts(suffix) > 1)
    return machine.readFields(operand, *width);
  Expected<Field> field = machine.readFloat(operand, type);
  if (!field)
    return field.takeError();
  return Fields{std::move(*field)};
}

Error mlir::autodiff::ptx::runMove(Machine &machine,
                                   const Instruction &instruction) {
  if (Error error = checkSignature(instruction, 2, {}))
    return error;
  ArrayRef<Operand> operands = instruction.operands;
  if (instruction.lastModifier() == "pred") {
    Expected<Field> predicate = machine.readPredicate(operands[1]);
    if (!predicate)
      return predicate.takeError();
    return machine.writePredicate(operands[0], std::move(*predicate));
  }
  Expected<Fields> fields =
      readAny(machine, operands[1], instruction.lastModifier());
  if (!fields)
    return fields.takeError();
  return machine.write(operands[0], std::move(*fields));
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

static std::optional<CmpFPredicate> findFloatPredicate(StringRef name) {
  return llvm::StringSwitch<std::optional<CmpFPredicate>>(name)
      .Case("eq", CmpFPredicate::OEQ)
      .Case("ne", CmpFPredicate::ONE)
      .Case("lt", CmpFPredicate::OLT)
      .Case("le", CmpFPredicate::OLE)
      .Case("gt", CmpFPredicate::OGT)
      .Case("ge", CmpFPredicate::OGE)
      .Case("equ", CmpFPredicate::UEQ)
      .Case("neu", CmpFPredicate::UNE)
      .Case("ltu", CmpFPredicate::ULT)
      .Case("leu", CmpFPredicate::ULE)
      .Case("gtu", CmpFPredicate::UGT)
      .Case("geu", CmpFPredicate::UGE)
      .Case("num", CmpFPredicate::ORD)
      .Case("nan", CmpFPredicate::UNO)
      .Default(std::nullopt);
}

static std::optional<CmpIPredicate> findIntegerPredicate(StringRef name,
                                                         StringRef suffix) {
  bool isSigned = suffix.starts_with("s");
  // Bits are equal or not.
  if (suffix.starts_with("b") && name != "eq" && name != "ne")
    return std::nullopt;
  return llvm::StringSwitch<std::optional<CmpIPredicate>>(name)
      .Case("eq", CmpIPredicate::eq)
      .Case("ne", CmpIPredicate::ne)
      .Case("lt", isSigned ? CmpIPredicate::slt : CmpIPredicate::ult)
      .Case("le", isSigned ? CmpIPredicate::sle : CmpIPredicate::ule)
      .Case("gt", isSigned ? CmpIPredicate::sgt : CmpIPredicate::ugt)
      .Case("ge", isSigned ? CmpIPredicate::sge : CmpIPredicate::uge)
      .Case("lo", CmpIPredicate::ult)
      .Case("ls", CmpIPredicate::ule)
      .Case("hi", CmpIPredicate::ugt)
      .Case("hs", CmpIPredicate::uge)
      .Default(std::nullopt);
}

/// Compares two operands; packed ones element by element.
static Expected<Fields>
compare(Machine &machine, const Instruction &instruction, StringRef suffix) {
  Emitter &e = machine.e;
  StringRef name = instruction.modifiers[0];
  const Operand &a = instruction.operands[1], &b = instruction.operands[2];
  Fields results;
  FloatType type = getFloatType(e, suffix);
  if (!type) {
    std::optional<CmpIPredicate> predicate = findIntegerPredicate(name, suffix);
    std::optional<unsigned> width = getWidth(suffix);
    if (!predicate || !width || countParts(suffix) > 1)
      return makeError("it is not known for '." + suffix + "'");
    Expected<Field> x = machine.readInteger(a, *width);
    if (!x)
      return x.takeError();
    Expected<Field> y = machine.readInteger(b, *width);
    if (!y)
      return y.takeError();
    results.push_back(makeField(e.compare(*predicate, x->value, y->value), 1,
                                x->all() | y->all()));
    return results;
  }
  std::optional<CmpFPredicate> predicate = findFloatPredicate(name);
  if (!predicate)
    return makeError("comparison '." + name + "'");
  for (unsigned part = 0; part < countParts(suffix); ++part) {
    Expected<Field> x = machine.readFloat(a, type, part);
    if (!x)
      return x.takeError();
    Expected<Field> y = machine.readFloat(b, type, part);
    if (!y)
      return y.takeError();
    if (instruction.has("ftz")) {
      x->value = flushSubnormal(e, x->value);
      y->value = flushSubnormal(e, y->value);
    }
    results.push_back(makeField(e.compare(*predicate, x->value, y->value), 1,
                                x->all() | y->all()));
  }
  return results;
}

/// Combines the predicate with another one: "setp.lt.and.f32 p, a, b, c;".
static Error combineWith(Machine &machine, const Instruction &instruction,
                         Field &predicate) {
  if (instruction.operands.size() < 4)
    return Error::success();
  Expected<Field> other = machine.readPredicate(instruction.operands[3]);
  if (!other)
    return other.takeError();
  Emitter &e = machine.e;
  predicate =
      makeField(instruction.has("and")  ? e.andi(predicate.value, other->value)
                : instruction.has("or") ? e.ori(predicate.value, other->value)
                                        : e.xori(predicate.value, other->value),
                1, predicate.all() | other->all());
  return Error::success();
}

/// "testp.finite.f32 p, a;"
static Error runTest(Machine &machine, const Instruction &instruction) {
  Emitter &e = machine.e;
  FloatType type = getFloatType(e, instruction.lastModifier());
  if (instruction.operands.size() != 2 || instruction.modifiers.size() != 2 ||
      !type || type.getWidth() < 32)
    return makeError("its form is not known");
  Expected<Field> x = machine.readFloat(instruction.operands[1], type);
  if (!x)
    return x.takeError();
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  Value magnitude = e.map<math::AbsFOp>(x->value);
  Value infinity = e.constant(type, APFloat::getInf(semantics));
  Value smallest = e.constant(type, APFloat::getSmallestNormalized(semantics));
  Value zero = e.constant(type, 0.0);
  auto both = [&](Value a, Value b) { return e.andi(a, b); };
  Value isBelow = e.compare(CmpFPredicate::OLT, magnitude, infinity);
  StringRef test = instruction.modifiers[0];
  Value answer;
  if (test == "finite")
    answer = isBelow;
  else if (test == "infinite")
    answer = e.compare(CmpFPredicate::OEQ, magnitude, infinity);
  else if (test == "number")
    answer = e.compare(CmpFPredicate::ORD, x->value, x->value);
  else if (test == "notanumber")
    answer = e.compare(CmpFPredicate::UNO, x->value, x->value);
  else if (test == "normal") // Zeros are.
    answer =
        both(isBelow, e.ori(e.compare(CmpFPredicate::OGE, magnitude, smallest),
                            e.compare(CmpFPredicate::OEQ, magnitude, zero)));
  else if (test == "subnormal")
    answer = both(e.compare(CmpFPredicate::OLT, magnitude, smallest),
                  e.compare(CmpFPredicate::OGT, magnitude, zero));
  if (!answer)
    return makeError("test '." + test + "'");
  return machine.writePredicate(instruction.operands[0],
                                makeField(answer, 1, x->all()));
}

/// "set.lt.u32.f32 d, a, b;": all ones, or the float one, where it holds.
static Error writeNumbers(Machine &machine, const Instruction &instruction,
                          ArrayRef<Field> predicates) {
  Emitter &e = machine.e;
  StringRef suffix = instruction.modifiers.end()[-2];
  std::optional<unsigned> width = getWidth(suffix);
  if (!width || *width % predicates.size())
    return makeError("it is not known for '." + suffix + "'");
  unsigned share = *width / predicates.size();
  FloatType type = getFloatType(e, suffix);
  if (type && type.getWidth() != share)
    return makeError("it is not known for '." + suffix + "'");
  Fields results;
  for (const Field &predicate : predicates) {
    Value value = type ? e.select(predicate.value, e.constant(type, 1.0),
                                  e.constant(type, 0.0))
                       : e.resize(predicate.value, share, /*isSigned=*/true);
    results.push_back(makeField(value, share, predicate.all()));
  }
  return machine.write(instruction.operands[0], std::move(results));
}

Error mlir::autodiff::ptx::runComparison(Machine &machine,
                                         const Instruction &instruction) {
  if (instruction.opcode == "testp")
    return runTest(machine, instruction);
  ArrayRef<Operand> operands = instruction.operands;
  bool isSet = instruction.opcode == "set";
  bool combines =
      instruction.has("and") || instruction.has("or") || instruction.has("xor");
  if (instruction.modifiers.size() < (isSet ? 3 : 2) ||
      operands.size() != (combines ? 4 : 3))
    return makeError("its form is not known");
  for (StringRef modifier :
       ArrayRef(instruction.modifiers).drop_front().drop_back(isSet ? 2 : 1))
    if (!llvm::is_contained({"and", "or", "xor", "ftz"}, modifier))
      return makeError("modifier '." + modifier + "'");
  Expected<Fields> predicates =
      compare(machine, instruction, instruction.lastModifier());
  if (!predicates)
    return predicates.takeError();
  const Operand &target = operands[0];
  bool isPair = target.kind == Operand::Kind::Pair;
  // The second predicate is the opposite, unless packed elements are compared.
  if (isPair && predicates->size() == 1) {
    Field opposite = (*predicates)[0];
    if (!mutation::isMade("assembly:the second predicate is the first"))
      opposite.value = machine.e.noti(opposite.value);
    predicates->push_back(std::move(opposite));
  }
  for (Field &predicate : *predicates)
    if (Error error = combineWith(machine, instruction, predicate))
      return error;
  if (isSet)
    return writeNumbers(machine, instruction, *predicates);
  if (!isPair) {
    if (predicates->size() > 1)
      return makeError("it sets two predicates");
    return machine.writePredicate(target, (*predicates)[0]);
  }
  for (auto [part, predicate] : llvm::zip_equal(target.parts, *predicates))
    if (Error error = machine.writePredicate(part, predicate))
      return error;
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Selections
//===----------------------------------------------------------------------===//

/// "slct.f32.s32 d, a, b, c;": a where c is not negative.
static Expected<Field> readSign(Machine &machine,
                                const Instruction &instruction) {
  Emitter &e = machine.e;
  const Operand &operand = instruction.operands[3];
  if (instruction.lastModifier() == "f32") {
    Expected<Field> c = machine.readFloat(operand, e.f32());
    if (!c)
      return c;
    // A subnormal number counts as zero.
    if (instruction.has("ftz"))
      c->value = flushSubnormal(e, c->value);
    return makeField(
        e.compare(CmpFPredicate::OGE, c->value, e.constant(e.f32(), 0.0)), 1,
        c->all());
  }
  if (instruction.lastModifier() != "s32")
    return makeError("it is not known for '." + instruction.lastModifier() +
                     "'");
  Expected<Field> c = machine.readInteger(operand, 32);
  if (!c)
    return c;
  return makeField(e.compare(CmpIPredicate::sge, c->value, e.constant(32, 0)),
                   1, c->all());
}

Error mlir::autodiff::ptx::runSelection(Machine &machine,
                                        const Instruction &instruction) {
  bool bySign = instruction.opcode == "slct";
  if (Error error = checkSignature(instruction, 4, {"ftz"}, bySign ? 2 : 1))
    return error;
  ArrayRef<Operand> operands = instruction.operands;
  StringRef suffix = instruction.modifiers.end()[bySign ? -2 : -1];
  Expected<Field> condition = bySign ? readSign(machine, instruction)
                                     : machine.readPredicate(operands[3]);
  if (!condition)
    return condition.takeError();
  Expected<Fields> a = readAny(machine, operands[1], suffix);
  if (!a)
    return a.takeError();
  Expected<Fields> b = readAny(machine, operands[2], suffix);
  if (!b)
    return b.takeError();
  Expected<Fields> selected = machine.select(*condition, *a, *b);
  if (!selected)
    return selected.takeError();
  return machine.write(operands[0], std::move(*selected));
}
