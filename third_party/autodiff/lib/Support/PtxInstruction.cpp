//===- PtxInstruction.cpp - Inline assembly of one instruction ------------===//
#include "autodiff/Support/PtxInstruction.h"

#include "autodiff/Support/PtxProgram.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::autodiff;
using Rounding = PtxInstruction::Rounding;

/// The function that an opcode computes, or "".
static StringRef findFunction(StringRef opcode) {
  return llvm::StringSwitch<StringRef>(opcode)
      .Case("abs", "fabs")
      .Case("add", "add")
      .Case("copysign", "copysign")
      .Case("cos", "cos")
      .Case("cvt", "cvt")
      .Case("div", "div")
      .Case("ex2", "exp2")
      .Cases({"fma", "mad"}, "fma")
      .Case("lg2", "log2")
      .Case("max", "fmax")
      .Case("min", "fmin")
      .Case("mov", "mov")
      .Case("mul", "mul")
      .Case("neg", "neg")
      .Case("rcp", "rcp")
      .Case("rsqrt", "rsqrt")
      .Case("sin", "sin")
      .Case("sqrt", "sqrt")
      .Case("sub", "sub")
      .Case("tanh", "tanh")
      .Default("");
}

/// Applies a modifier. False for those that change the function (sat, relu,
/// xorsign).
static bool applyModifier(PtxInstruction &instruction, StringRef modifier) {
  std::optional<Rounding> rounding =
      llvm::StringSwitch<std::optional<Rounding>>(modifier)
          .Case("rn", Rounding::Nearest)
          .Case("rz", Rounding::TowardZero)
          .Case("rm", Rounding::Down)
          .Case("rp", Rounding::Up)
          .Case("rna", Rounding::NearestAway)
          .Default(std::nullopt);
  if (rounding) {
    instruction.rounding = *rounding;
    return true;
  }
  if (modifier == "ftz")
    instruction.flushes = true;
  else if (modifier == "approx")
    instruction.isApproximate = true;
  else if (modifier == "NaN" && instruction.opcode == "max")
    instruction.function = "maximum";
  else if (modifier == "NaN" && instruction.opcode == "min")
    instruction.function = "minimum";
  else if (modifier != "full")
    return false;
  return true;
}

/// Whether a register of the PTX type `suffix` holds an `element`.
static bool isType(StringRef suffix, Type element) {
  return llvm::StringSwitch<bool>(suffix)
      .Cases({"f32", "b32", "tf32"}, element.isF32())
      .Cases({"f64", "b64"}, element.isF64())
      .Case("f16", element.isF16())
      .Case("bf16", element.isBF16())
      .Cases({"s32", "u32"}, element.isInteger(32))
      .Cases({"s64", "u64"}, element.isInteger(64))
      .Default(false);
}

/// "cvt.rni.f32.f32": rounds to an integer, which is another function.
static StringRef findWholeNumber(StringRef modifier) {
  return llvm::StringSwitch<StringRef>(modifier)
      .Case("rni", "rint")
      .Case("rzi", "trunc")
      .Case("rmi", "floor")
      .Case("rpi", "ceil")
      .Default("");
}

/// Reads the types and the function of a conversion.
static bool readConversion(PtxInstruction &result,
                           SmallVectorImpl<StringRef> &modifiers, Type to,
                           Type from) {
  if (modifiers.size() < 2 || !isType(modifiers.back(), from) ||
      !isType(modifiers.end()[-2], to) || !isa<FloatType>(to))
    return false;
  if (modifiers.end()[-2] == "tf32")
    result.format = "tf32";
  modifiers.pop_back_n(2);
  if (to == from && result.format.empty()) {
    auto whole = llvm::find_if(modifiers, [](StringRef modifier) {
      return !findWholeNumber(modifier).empty();
    });
    if (whole == modifiers.end())
      return false;
    result.function = findWholeNumber(*whole);
    modifiers.erase(whole);
  }
  return true;
}

/// "cvt.rp.satfinite.ue8m0x2.f32 $0, 0.0, $1;": converts to powers of two, one
/// of two packed numbers.
static bool isExponent(const ptx::Instruction &instruction, Type result,
                       ArrayRef<Type> operands) {
  return instruction.opcode == "cvt" && instruction.modifiers.size() == 4 &&
         instruction.has("satfinite") &&
         instruction.modifiers[2] == "ue8m0x2" &&
         instruction.lastModifier() == "f32" && result.isInteger(16) &&
         operands.size() == 1 && operands[0].isF32() &&
         instruction.operands.size() == 3 &&
         instruction.operands[1].kind == ptx::Operand::Kind::Float;
}

std::optional<PtxInstruction>
mlir::autodiff::parsePtxInstruction(StringRef text, Type result,
                                    ArrayRef<Type> operands) {
  SmallVector<unsigned> widths{result.getIntOrFloatBitWidth()};
  for (Type type : operands)
    widths.push_back(type.getIntOrFloatBitWidth());
  llvm::Expected<ptx::Program> program = ptx::parseProgram(text, widths);
  if (!program) {
    llvm::consumeError(program.takeError());
    return std::nullopt;
  }
  if (program->instructions.size() != 1 ||
      program->registers.size() != widths.size())
    return std::nullopt;
  const ptx::Instruction &instruction = program->instructions[0];
  PtxInstruction parsed;
  parsed.opcode = instruction.opcode;
  parsed.function = findFunction(instruction.opcode);
  if (instruction.guard || parsed.function.empty() ||
      instruction.modifiers.empty() || instruction.operands.empty())
    return std::nullopt;
  ArrayRef<ptx::Operand> given = instruction.operands;
  SmallVector<StringRef> modifiers(instruction.modifiers);
  if (isExponent(instruction, result, operands)) {
    parsed.function = "float2e8m0";
    parsed.format = "ue8m0";
    modifiers.clear();
  } else if (parsed.opcode == "cvt") {
    if (operands.size() != 1 ||
        !readConversion(parsed, modifiers, result, operands[0]))
      return std::nullopt;
  } else {
    StringRef type = modifiers.pop_back_val();
    bool movesBits = type.starts_with("b") && !type.starts_with("bf");
    if ((movesBits && parsed.opcode != "mov") || type == "tf32" ||
        !isa<FloatType>(result) || !isType(type, result) ||
        llvm::any_of(operands, [&](Type other) { return other != result; }))
      return std::nullopt;
  }
  for (StringRef modifier : modifiers)
    if (!applyModifier(parsed, modifier))
      return std::nullopt;

  // The result is $0, operand i is $(i + 1).
  for (auto [number, operand] : llvm::enumerate(given)) {
    if (operand.kind != ptx::Operand::Kind::Register) {
      if (parsed.format == "ue8m0" && number == 1)
        continue;
      return std::nullopt;
    }
    if (operand.isNegated || (operand.index == 0) != (number == 0))
      return std::nullopt;
    if (number)
      parsed.operands.push_back(operand.index - 1);
  }
  // In PTX, the operand with the sign comes first.
  if (parsed.function == "copysign")
    std::reverse(parsed.operands.begin(), parsed.operands.end());
  return parsed;
}

std::optional<PtxInstruction>
mlir::autodiff::parsePtxInstruction(triton::ElementwiseInlineAsmOp op) {
  if (op->getNumResults() != 1 || op.getPackedElement() != 1)
    return std::nullopt;
  auto isNumber = [](Type type) {
    return getElementTypeOrSelf(type).isIntOrFloat();
  };
  if (!llvm::all_of(op->getOperandTypes(), isNumber) ||
      !isNumber(op->getResult(0).getType()))
    return std::nullopt;
  SmallVector<Type> operands =
      llvm::map_to_vector(op->getOperandTypes(),
                          [](Type type) { return getElementTypeOrSelf(type); });
  return parsePtxInstruction(op.getAsmString(),
                             getElementTypeOrSelf(op->getResult(0).getType()),
                             operands);
}
