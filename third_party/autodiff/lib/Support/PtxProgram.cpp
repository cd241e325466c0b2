//===- PtxProgram.cpp - Straight-line PTX as it is written ----------------===//
#include "autodiff/Support/PtxProgram.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"

using namespace mlir::autodiff::ptx;
using llvm::StringRef;
using llvm::Twine;

llvm::Error mlir::autodiff::ptx::makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

bool Instruction::has(StringRef modifier) const {
  return llvm::is_contained(modifiers, modifier);
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

static bool isNameStart(char c) {
  return llvm::isAlpha(c) || c == '_' || c == '%' || c == '$';
}
static bool isNamePart(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '$';
}

/// Splits text into names ("%r1", "ex2", "$0"), numbers ("0f3F800000", "1e-3"),
/// and single characters; leaves comments out.
static llvm::Expected<std::vector<StringRef>> tokenize(StringRef text) {
  std::vector<StringRef> tokens;
  while (true) {
    text = text.ltrim();
    if (text.empty())
      return tokens;
    if (text.starts_with("//")) {
      text = text.drop_until([](char c) { return c == '\n'; });
      continue;
    }
    if (text.consume_front("/*")) {
      size_t end = text.find("*/");
      if (end == StringRef::npos)
        return makeError("a comment does not end");
      text = text.drop_front(end + 2);
      continue;
    }
    size_t length = 1;
    if (isNameStart(text[0])) {
      while (length < text.size() && isNamePart(text[length]))
        ++length;
    } else if (llvm::isDigit(text[0])) {
      // An exponent may have a sign; hexadecimal digits have none.
      bool isHex = text.size() > 1 && text[0] == '0' &&
                   StringRef("xXfFdD").contains(text[1]);
      while (length < text.size() &&
             (llvm::isAlnum(text[length]) || text[length] == '.' ||
              (!isHex && StringRef("+-").contains(text[length]) &&
               StringRef("eE").contains(text[length - 1]))))
        ++length;
    }
    tokens.push_back(text.take_front(length));
    text = text.drop_front(length);
  }
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// The width of a register of this type; none for types that registers do not
/// have.
static std::optional<unsigned> getWidth(StringRef type) {
  return llvm::StringSwitch<std::optional<unsigned>>(type)
      .Case("pred", 1)
      .Cases({"b8", "s8", "u8"}, 8)
      .Cases({"b16", "s16", "u16", "f16", "bf16"}, 16)
      .Cases({"b32", "s32", "u32", "f32", "f16x2", "bf16x2"}, 32)
      .Cases({"b64", "s64", "u64", "f64"}, 64)
      .Default(std::nullopt);
}

/// The most registers that a text may declare.
constexpr unsigned kMostRegisters = 4096;

namespace {
class Parser {
public:
  Parser(std::vector<StringRef> tokens, llvm::ArrayRef<unsigned> outer)
      : tokens(std::move(tokens)) {
    for (auto [number, width] : llvm::enumerate(outer)) {
      Register reg{("$" + Twine(number)).str(), width, /*isPredicate=*/false,
                   static_cast<unsigned>(number)};
      program.registers.push_back(std::move(reg));
    }
    scopes.emplace_back();
  }

  llvm::Expected<Program> parse();

private:
  StringRef peek(unsigned ahead = 0) const {
    return position + ahead < tokens.size() ? tokens[position + ahead] : "";
  }
  StringRef take() {
    return position < tokens.size() ? tokens[position++] : "";
  }
  bool consume(StringRef token) {
    if (peek() != token)
      return false;
    ++position;
    return true;
  }
  llvm::Error expect(StringRef token, const Twine &behind) {
    if (consume(token))
      return llvm::Error::success();
    return makeError("expected '" + token + "' behind " + behind);
  }

  llvm::Error parseStatement();
  llvm::Error parseDirective();
  llvm::Error parseInstruction();
  llvm::Error declare(StringRef name, StringRef type, unsigned width);
  llvm::Expected<Operand> parseOperand();
  llvm::Expected<Operand> parseRegister();
  llvm::Expected<Operand> parseNumber(bool isNegative);

  std::vector<StringRef> tokens;
  size_t position = 0;
  /// The meaning of names in the blocks around a statement, innermost last.
  std::vector<llvm::StringMap<unsigned>> scopes;
  Program program;
};
} // namespace

llvm::Expected<Program> Parser::parse() {
  while (position < tokens.size())
    if (llvm::Error error = parseStatement())
      return error;
  if (scopes.size() > 1)
    return makeError("a block does not end");
  return std::move(program);
}

llvm::Error Parser::parseStatement() {
  if (consume(";"))
    return llvm::Error::success();
  if (consume("{")) {
    scopes.emplace_back();
    return llvm::Error::success();
  }
  if (consume("}")) {
    if (scopes.size() == 1)
      return makeError("'}' closes no block");
    scopes.pop_back();
    return llvm::Error::success();
  }
  if (consume("."))
    return parseDirective();
  if (peek(1) == ":")
    return makeError("label '" + peek() + "'");
  return parseInstruction();
}

llvm::Error Parser::declare(StringRef name, StringRef type, unsigned width) {
  if (program.registers.size() == kMostRegisters)
    return makeError("more registers than " + Twine(kMostRegisters));
  if (!scopes.back().try_emplace(name, program.registers.size()).second)
    return makeError("register '" + name + "' is declared twice");
  program.registers.push_back(
      Register{name.str(), width, type == "pred", std::nullopt});
  return llvm::Error::success();
}

/// ".reg .b32 a, b<2>;"
llvm::Error Parser::parseDirective() {
  StringRef directive = take();
  if (directive != "reg")
    return makeError("directive '." + directive + "'");
  if (llvm::Error error = expect(".", "'.reg'"))
    return error;
  StringRef type = take();
  std::optional<unsigned> width = getWidth(type);
  if (!width)
    return makeError("a register of type '." + type + "'");
  do {
    StringRef name = take();
    if (name.empty() || !isNameStart(name[0]) || name[0] == '$')
      return makeError("expected a register's name behind '.reg ." + type +
                       "'");
    if (!consume("<")) {
      if (llvm::Error error = declare(name, type, *width))
        return error;
      continue;
    }
    unsigned count;
    if (take().getAsInteger(10, count) || count > kMostRegisters)
      return makeError("expected how many registers '" + name + "' are");
    if (llvm::Error error = expect(">", "the number of registers"))
      return error;
    for (unsigned i = 0; i < count; ++i)
      if (llvm::Error error = declare((name + Twine(i)).str(), type, *width))
        return error;
  } while (consume(","));
  return expect(";", "the registers '." + type + "'");
}

llvm::Error Parser::parseInstruction() {
  Instruction instruction;
  if (consume("@")) {
    bool isNegated = consume("!");
    llvm::Expected<Operand> guard = parseRegister();
    if (!guard)
      return guard.takeError();
    if (!program.registers[guard->index].isPredicate)
      return makeError("'@" + program.registers[guard->index].name +
                       "' is not a predicate");
    guard->isNegated = isNegated;
    instruction.guard = std::move(*guard);
  }
  instruction.opcode = take();
  if (instruction.opcode.empty() || !llvm::isAlpha(instruction.opcode[0]))
    return makeError("expected an instruction, got '" + instruction.opcode +
                     "'");
  instruction.name = instruction.opcode.str();
  while (consume(".")) {
    instruction.modifiers.push_back(take());
    instruction.name += "." + instruction.modifiers.back().str();
  }
  if (instruction.opcode == "bra" || instruction.opcode == "call" ||
      instruction.opcode == "brx" || instruction.opcode == "ret" ||
      instruction.opcode == "exit")
    return makeError("branch '" + instruction.name + "'");
  while (!peek().empty() && peek() != ";") {
    llvm::Expected<Operand> operand = parseOperand();
    if (!operand)
      return makeError("'" + instruction.name +
                       "': " + llvm::toString(operand.takeError()));
    instruction.operands.push_back(std::move(*operand));
    if (!consume(","))
      break;
  }
  // The last statement needs no semicolon.
  if (peek() != "" && peek() != "}")
    if (llvm::Error error = expect(";", "'" + instruction.name + "'"))
      return error;
  program.instructions.push_back(std::move(instruction));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

llvm::Expected<Operand> Parser::parseOperand() {
  if (consume("!")) {
    llvm::Expected<Operand> operand = parseRegister();
    if (operand)
      operand->isNegated = true;
    return operand;
  }
  if (consume("{")) {
    Operand vector;
    vector.kind = Operand::Kind::Vector;
    do {
      llvm::Expected<Operand> part = parseOperand();
      if (!part)
        return part;
      if (part->kind == Operand::Kind::Vector ||
          part->kind == Operand::Kind::Pair)
        return makeError("a vector in a vector");
      vector.parts.push_back(std::move(*part));
    } while (consume(","));
    if (llvm::Error error = expect("}", "a vector"))
      return error;
    return vector;
  }
  if (peek() == "[")
    return makeError("memory is accessed");
  if (consume("-"))
    return parseNumber(/*isNegative=*/true);
  if (!peek().empty() && llvm::isDigit(peek()[0]))
    return parseNumber(/*isNegative=*/false);
  if (consume("_"))
    return Operand();
  llvm::Expected<Operand> first = parseRegister();
  if (!first || !consume("|"))
    return first;
  Operand second;
  if (!consume("_")) {
    llvm::Expected<Operand> named = parseRegister();
    if (!named)
      return named;
    second = std::move(*named);
  }
  Operand pair;
  pair.kind = Operand::Kind::Pair;
  pair.parts = {std::move(*first), std::move(second)};
  return pair;
}

llvm::Expected<Operand> Parser::parseRegister() {
  Operand operand;
  operand.kind = Operand::Kind::Register;
  StringRef name = take();
  // "$1", "${1}"
  if (StringRef number = name; number.consume_front("$")) {
    if (number.empty() && consume("{")) {
      number = take();
      if (llvm::Error error = expect("}", "'${" + number + "'"))
        return error;
    }
    unsigned outer;
    if (number.getAsInteger(10, outer) || outer >= program.registers.size() ||
        !program.registers[outer].outer)
      return makeError("'" + name + "' is no operand of the assembly");
    operand.index = outer;
    return operand;
  }
  for (const llvm::StringMap<unsigned> &scope : llvm::reverse(scopes))
    if (auto found = scope.find(name); found != scope.end()) {
      operand.index = found->second;
      return operand;
    }
  if (name.empty() || !isNameStart(name[0]))
    return makeError("expected an operand, got '" + name + "'");
  std::string part = peek() == "." ? ("." + peek(1)).str() : "";
  return makeError("'" + name + part +
                   "', which is no register that is declared here");
}

llvm::Expected<Operand> Parser::parseNumber(bool isNegative) {
  StringRef text = take();
  auto wrong = [&] { return makeError("'" + text + "' is no number"); };
  Operand operand;
  if (text.starts_with_insensitive("0f") ||
      text.starts_with_insensitive("0d")) {
    bool isSingle = text.starts_with_insensitive("0f");
    operand.kind = Operand::Kind::FloatBits;
    operand.width = isSingle ? 32 : 64;
    if (text.size() != (isSingle ? 10 : 18) ||
        text.drop_front(2).getAsInteger(16, operand.bits) || isNegative)
      return wrong();
    return operand;
  }
  bool isHex = text.starts_with_insensitive("0x");
  if (!isHex && text.find_first_of(".eE") != StringRef::npos) {
    operand.kind = Operand::Kind::Float;
    if (text.getAsDouble(operand.number))
      return wrong();
    if (isNegative)
      operand.number = -operand.number;
    return operand;
  }
  operand.kind = Operand::Kind::Integer;
  StringRef digits = text;
  if (digits.ends_with_insensitive("u"))
    digits = digits.drop_back();
  // A leading zero means octal, as in C.
  if (digits.getAsInteger(0, operand.bits))
    return wrong();
  if (isNegative)
    operand.bits = 0 - operand.bits;
  return operand;
}

llvm::Expected<Program>
mlir::autodiff::ptx::parseProgram(StringRef text,
                                  llvm::ArrayRef<unsigned> outer) {
  llvm::Expected<std::vector<StringRef>> tokens = tokenize(text);
  if (!tokens)
    return tokens.takeError();
  return Parser(std::move(*tokens), outer).parse();
}
