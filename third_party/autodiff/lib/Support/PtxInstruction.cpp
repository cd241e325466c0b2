//===- PtxInstruction.cpp - Inline assembly of one instruction ------------===//
#include "autodiff/Support/PtxInstruction.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::autodiff;

/// The function that an opcode computes, or "".
static StringRef findFunction(StringRef opcode) {
  return llvm::StringSwitch<StringRef>(opcode)
      .Case("abs", "fabs")
      .Case("add", "add")
      .Case("copysign", "copysign")
      .Case("cos", "cos")
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

/// Modifiers that only say how exactly the function is computed. Others (sat,
/// relu, xorsign) make it another function.
static bool isPrecision(StringRef modifier) {
  return llvm::StringSwitch<bool>(modifier)
      .Cases({"approx", "full", "ftz", "rn", "rz", "rm", "rp"}, true)
      .Default(false);
}

/// Whether an instruction on `suffix` works on `packed` elements of this type
/// at once.
static bool isType(StringRef suffix, Type element, unsigned packed) {
  if (suffix == "f16x2" || suffix == "bf16x2")
    return packed % 2 == 0 && packed > 0 &&
           (suffix == "f16x2" ? element.isF16() : element.isBF16());
  return packed == 1 && llvm::StringSwitch<bool>(suffix)
                            .Cases({"f32", "b32"}, element.isF32())
                            .Cases({"f64", "b64"}, element.isF64())
                            .Case("f16", element.isF16())
                            .Case("bf16", element.isBF16())
                            .Default(false);
}

/// The one statement in the text, without braces, comments and the semicolon;
/// or "".
static std::string takeStatement(StringRef text) {
  std::string stripped;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    stripped += line.split("//").first.str() + " ";
    text = rest;
  }
  StringRef statement = StringRef(stripped).trim();
  if (statement.consume_front("{")) {
    if (!statement.consume_back("}"))
      return "";
    statement = statement.trim();
  }
  statement.consume_back(";");
  return statement.find_first_of(";{}@[/") == StringRef::npos
             ? statement.trim().str()
             : "";
}

std::optional<PtxInstruction>
mlir::autodiff::parsePtxInstruction(triton::ElementwiseInlineAsmOp op) {
  if (op->getNumResults() != 1)
    return std::nullopt;
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  for (Value operand : op->getOperands())
    if (getElementTypeOrSelf(operand.getType()) != element)
      return std::nullopt;

  std::string statement = takeStatement(op.getAsmString());
  auto [instruction, arguments] = StringRef(statement).split(' ');
  SmallVector<StringRef> parts;
  instruction.split(parts, '.');
  StringRef function = findFunction(parts.front());
  if (function.empty() || parts.size() < 2 ||
      !isType(parts.back(), element, op.getPackedElement()))
    return std::nullopt;
  bool movesBits =
      parts.back().starts_with("b") && !parts.back().starts_with("bf");
  if (movesBits && function != "mov")
    return std::nullopt;
  for (StringRef modifier : ArrayRef(parts).drop_front().drop_back())
    if (!isPrecision(modifier))
      return std::nullopt;

  SmallVector<StringRef> registers;
  arguments.split(registers, ',');
  SmallVector<unsigned> numbers;
  for (StringRef text : registers) {
    unsigned number;
    text = text.trim();
    if (!text.consume_front("$") || text.getAsInteger(10, number) ||
        number > op->getNumOperands())
      return std::nullopt;
    numbers.push_back(number);
  }
  // The result is $0, operand i is $(i + 1).
  if (numbers.front() != 0 ||
      llvm::is_contained(ArrayRef(numbers).drop_front(), 0u))
    return std::nullopt;
  PtxInstruction result{function.str(), {}};
  for (unsigned number : ArrayRef(numbers).drop_front())
    result.operands.push_back(number - 1);
  // PTX names the operand with the sign first.
  if (function == "copysign")
    std::reverse(result.operands.begin(), result.operands.end());
  return result;
}
