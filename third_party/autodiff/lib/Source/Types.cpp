//===- Types.cpp - Types and constants in Python --------------------------===//
#include "Types.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::autodiff::source;

std::string mlir::autodiff::source::typeText(Type element, bool isUnsigned) {
  return llvm::TypeSwitch<Type, std::string>(element)
      .Case([&](IntegerType type) -> std::string {
        if (type.getWidth() == 1)
          return "tl.int1";
        return (isUnsigned ? "tl.uint" : "tl.int") +
               std::to_string(type.getWidth());
      })
      .Case([](triton::PointerType type) {
        return "tl.pointer_type(" + typeText(type.getPointeeType()) + ")";
      })
      .Case([](triton::TensorDescType type) {
        RankedTensorType block = type.getBlockType();
        return "tl.tensor_descriptor of " + typeText(block.getElementType()) +
               " " + shapeText(block);
      })
      .Case([](BFloat16Type) { return "tl.bfloat16"; })
      .Case([](Float8E5M2Type) { return "tl.float8e5"; })
      .Case([](Float8E4M3FNType) { return "tl.float8e4nv"; })
      .Case([](Float8E4M3FNUZType) { return "tl.float8e4b8"; })
      .Case([](Float8E5M2FNUZType) { return "tl.float8e5b16"; })
      .Default([](Type type) {
        return "tl.float" + std::to_string(type.getIntOrFloatBitWidth());
      });
}

std::string mlir::autodiff::source::shapeText(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile)
    return "[]";
  return "[" +
         llvm::join(llvm::map_range(
                        tile.getShape(),
                        [](int64_t length) { return std::to_string(length); }),
                    ", ") +
         "]";
}

std::optional<Attribute> mlir::autodiff::source::elementOf(Value value) {
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return std::nullopt;
  if (auto all = dyn_cast<SplatElementsAttr>(constant))
    return all.getSplatValue<Attribute>();
  if (isa<IntegerAttr, FloatAttr>(constant))
    return constant;
  return std::nullopt;
}

static std::string floatText(const APFloat &number) {
  if (number.isNaN())
    return "float(\"nan\")";
  if (number.isInfinity())
    return number.isNegative() ? "float(\"-inf\")" : "float(\"inf\")";
  // The fewest digits that give this number again. (For the largest number,
  // fewer digits would be rounded up, out of the type's range.)
  SmallVector<char> digits;
  unsigned fewest = number.isLargest() ? 17 : 1;
  for (unsigned precision = fewest; precision <= 17; ++precision) {
    digits.clear();
    number.toString(digits, precision, /*FormatMaxPadding=*/6);
    APFloat again(number.getSemantics(),
                  StringRef(digits.data(), digits.size()));
    if (again.bitwiseIsEqual(number))
      break;
  }
  auto [text, exponent] = StringRef(digits.data(), digits.size()).split('E');
  if (exponent.empty())
    return (text + (text.contains('.') ? "" : ".0")).str();
  exponent.consume_front("+");
  return (text + "e" + exponent).str();
}

std::string mlir::autodiff::source::literalText(Attribute element,
                                                bool isUnsigned) {
  if (auto number = dyn_cast<FloatAttr>(element))
    return floatText(number.getValue());
  const APInt &number = cast<IntegerAttr>(element).getValue();
  if (number.getBitWidth() == 1)
    return number.isZero() ? "False" : "True";
  return llvm::toString(number, 10, /*Signed=*/!isUnsigned);
}

std::string mlir::autodiff::source::quoted(llvm::StringRef text) {
  std::string escaped;
  llvm::raw_string_ostream os(escaped);
  llvm::printEscapedString(text, os);
  std::string python;
  // LLVM writes `\0A`, Python `\x0A`.
  for (size_t i = 0; i < escaped.size(); ++i) {
    python += escaped[i];
    if (escaped[i] == '\\' && escaped[i + 1] == '\\')
      python += escaped[++i];
    else if (escaped[i] == '\\')
      python += "x";
  }
  return "\"" + python + "\"";
}
