//===- Floats.cpp - Instructions on floats --------------------------------===//
//
// An instruction that is exact, or rounds to nearest, becomes an operation of
// TTIR. One that is approximate, rounds otherwise, or flushes subnormal numbers
// stays an instruction, alone in its inline assembly: so the GPU computes the
// same as before.
//
//===----------------------------------------------------------------------===//
#include "autodiff/Assembly/Machine.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;
using namespace mlir::autodiff::ptx;
using llvm::Error;
using llvm::Expected;

Value mlir::autodiff::ptx::saturate(Emitter &e, Value x) {
  auto type = cast<FloatType>(Emitter::elementOf(x));
  Value zero = e.constant(type, 0.0), one = e.constant(type, 1.0);
  Value above =
      e.select(e.compare(arith::CmpFPredicate::OGT, x, zero), x, zero);
  return e.select(e.compare(arith::CmpFPredicate::OLT, above, one), above, one);
}

Value mlir::autodiff::ptx::rectify(Emitter &e, Value x) {
  Value zero = e.constant(cast<FloatType>(Emitter::elementOf(x)), 0.0);
  return e.select(e.compare(arith::CmpFPredicate::OLE, x, zero), zero, x);
}

Value mlir::autodiff::ptx::flushSubnormal(Emitter &e, Value x) {
  auto type = cast<FloatType>(Emitter::elementOf(x));
  if (type.getWidth() > 32 || type.isBF16())
    return x;
  Value smallest = e.constant(
      type, APFloat::getSmallestNormalized(type.getFloatSemantics()));
  Value isSmall =
      e.compare(arith::CmpFPredicate::OLT, e.map<math::AbsFOp>(x), smallest);
  // A product with zero keeps the sign.
  return e.select(isSmall, e.map<arith::MulFOp>(x, e.constant(type, 0.0)), x);
}

/// How many operands an opcode takes.
static unsigned countOperands(StringRef opcode) {
  if (opcode == "fma" || opcode == "mad")
    return 3;
  return llvm::is_contained(
             {"add", "sub", "mul", "div", "min", "max", "copysign"}, opcode)
             ? 2
             : 1;
}

/// The operation of TTIR that an instruction is, if it rounds to nearest and
/// flushes nothing; else null.
static Value emitExact(Emitter &e, const Instruction &instruction,
                       ArrayRef<Value> x) {
  StringRef opcode = instruction.opcode;
  auto type = cast<FloatType>(Emitter::elementOf(x[0]));
  if (opcode == "add")
    return e.map<arith::AddFOp>(x[0], x[1]);
  if (opcode == "sub")
    return e.map<arith::SubFOp>(x[0], x[1]);
  if (opcode == "mul")
    return e.map<arith::MulFOp>(x[0], x[1]);
  if (opcode == "fma" || opcode == "mad")
    return e.map<math::FmaOp>(x[0], x[1], x[2]);
  if (opcode == "abs")
    return e.map<math::AbsFOp>(x[0]);
  // Zero keeps its sign, which 0 - x would not.
  if (opcode == "neg")
    return e.map<arith::MulFOp>(x[0], e.constant(type, -1.0));
  bool propagates = instruction.has("NaN");
  if (opcode == "max")
    return propagates ? e.map<arith::MaximumFOp>(x[0], x[1])
                      : e.map<arith::MaxNumFOp>(x[0], x[1]);
  if (opcode == "min")
    return propagates ? e.map<arith::MinimumFOp>(x[0], x[1])
                      : e.map<arith::MinNumFOp>(x[0], x[1]);
  if (type.isF64() && opcode == "div")
    return e.map<arith::DivFOp>(x[0], x[1]);
  if (type.isF64() && opcode == "rcp" && !instruction.has("approx"))
    return e.map<arith::DivFOp>(e.constant(type, 1.0), x[0]);
  return {};
}

static Expected<Value> compute(Machine &machine, const Instruction &instruction,
                               StringRef type, ArrayRef<Value> x) {
  bool isExact = !instruction.has("ftz") && !instruction.has("rz") &&
                 !instruction.has("rm") && !instruction.has("rp");
  Value value;
  if (isExact)
    value = emitExact(machine.e, instruction, x);
  if (!value) {
    std::string name = instruction.opcode.str();
    for (StringRef modifier : ArrayRef(instruction.modifiers).drop_back())
      if (modifier != "sat" && modifier != "relu")
        name += "." + modifier.str();
    Expected<Value> emitted =
        machine.emitInstruction(name + "." + type, Emitter::elementOf(x[0]), x);
    if (!emitted)
      return emitted;
    value = *emitted;
  }
  if (instruction.has("sat"))
    value = saturate(machine.e, value);
  if (instruction.has("relu"))
    value = rectify(machine.e, value);
  return value;
}

Error mlir::autodiff::ptx::runFloat(Machine &machine,
                                    const Instruction &instruction) {
  StringRef suffix = instruction.lastModifier();
  FloatType type = getFloatType(machine.e, suffix);
  if (!type)
    return makeError("it is not known for '." + suffix + "'");
  unsigned count = countOperands(instruction.opcode);
  if (Error error = checkSignature(instruction, count + 1,
                                   {"rn", "rz", "rm", "rp", "ftz", "sat",
                                    "relu", "NaN", "approx", "full"}))
    return error;
  StringRef element = suffix;
  element.consume_back("x2");
  Fields results;
  for (unsigned part = 0; part < countParts(suffix); ++part) {
    SmallVector<Value> x;
    Lanes lanes = 0;
    for (const Operand &operand : ArrayRef(instruction.operands).drop_front()) {
      Expected<Field> field = machine.readFloat(operand, type, part);
      if (!field)
        return field.takeError();
      x.push_back(field->value);
      lanes |= field->all();
    }
    Expected<Value> value = compute(machine, instruction, element, x);
    if (!value)
      return value.takeError();
    results.push_back(makeField(*value, type.getWidth(), lanes));
  }
  return machine.write(instruction.operands[0], std::move(results));
}
