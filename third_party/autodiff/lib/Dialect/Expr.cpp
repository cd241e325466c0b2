//===- Expr.cpp - Integers that a launch can evaluate ---------------------===//
#include "autodiff/Dialect/Expr.h"

#include "ExprText.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::autodiff;
using Kind = ExprKind;

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

namespace {
/// How many operands a kind of expression has, and what its number means.
struct Shape {
  unsigned operands;
  enum Number { None, Any, Axis, Index } number;
};
} // namespace

static Shape shapeOf(Kind kind) {
  switch (kind) {
  case Kind::Constant:
    return {0, Shape::Any};
  case Kind::Grid:
  case Kind::ProgramId:
    return {0, Shape::Axis};
  case Kind::Argument:
  case Kind::Counted:
  case Kind::Extent:
  case Kind::Lead:
  case Kind::Span:
    return {0, Shape::Index};
  case Kind::Processors:
  case Kind::Shared:
  case Kind::Parts:
  case Kind::Deterministic:
    return {0, Shape::None};
  case Kind::SquareRoot:
  case Kind::MostOfPrograms:
  case Kind::InEachProgram:
  case Kind::OfPrograms:
    return {1, Shape::None};
  case Kind::Pitch:
  case Kind::Element:
    return {1, Shape::Index};
  case Kind::Add:
  case Kind::Sub:
  case Kind::Mul:
  case Kind::Div:
  case Kind::Rem:
  case Kind::CeilDiv:
  case Kind::Min:
  case Kind::Max:
  case Kind::Coarsest:
    return {2, Shape::None};
  }
  llvm_unreachable("unknown kind");
}

/// Whether an expression is just a name, without operands or number.
static bool isWord(Kind kind) {
  Shape shape = shapeOf(kind);
  return shape.operands == 0 && shape.number == Shape::None;
}

LogicalResult
ExprAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Kind kind,
                 int64_t number, ExprAttr lhs, ExprAttr rhs) {
  Shape shape = shapeOf(kind);
  llvm::StringRef name = stringifyExprKind(kind);
  if (unsigned(bool(lhs)) + bool(rhs) != shape.operands || (rhs && !lhs))
    return emitError() << "'" << name << "' is of " << shape.operands
                       << " numbers";
  if (shape.number == Shape::None && number != 0)
    return emitError() << "'" << name << "' has no number of its own";
  if (shape.number == Shape::Axis && (number < 0 || number > 2))
    return emitError() << "a grid has no axis " << number;
  if (shape.number == Shape::Index &&
      (number < 0 || number > std::numeric_limits<int32_t>::max()))
    return emitError() << "'" << name << "' cannot be of number " << number;
  if (kind == Kind::Pitch && !lhs.getConstant())
    return emitError() << "'pitch' takes a constant";
  for (ExprAttr operand : {lhs, rhs})
    if (operand && (operand.getKind() == Kind::InEachProgram ||
                    operand.getKind() == Kind::OfPrograms))
      return emitError() << "'" << stringifyExprKind(operand.getKind())
                         << "' is no number";
  return success();
}

ExprAttr ExprAttr::get(MLIRContext *context, int64_t number) {
  return get(context, Kind::Constant, number, {}, {});
}
ExprAttr ExprAttr::get(MLIRContext *context, Kind kind, int64_t number) {
  return get(context, kind, number, {}, {});
}
ExprAttr ExprAttr::get(Kind kind, ExprAttr operand, int64_t number) {
  return get(operand.getContext(), kind, number, operand, {});
}
ExprAttr ExprAttr::get(Kind kind, ExprAttr lhs, ExprAttr rhs) {
  return get(lhs.getContext(), kind, 0, lhs, rhs);
}

std::optional<int64_t> ExprAttr::getConstant() const {
  return getKind() == Kind::Constant ? std::optional(getNumber())
                                     : std::nullopt;
}

bool ExprAttr::hasSubexpression(
    llvm::function_ref<bool(ExprAttr)> isSuch) const {
  if (isSuch(*this))
    return true;
  return getKind() != Kind::MostOfPrograms &&
         ((getLhs() && getLhs().hasSubexpression(isSuch)) ||
          (getRhs() && getRhs().hasSubexpression(isSuch)));
}

void ExprAttr::collectCounters(llvm::DenseSet<int64_t> &counters) const {
  if (getKind() == Kind::Counted)
    counters.insert(getNumber());
  for (ExprAttr operand : {getLhs(), getRhs()})
    if (operand)
      operand.collectCounters(counters);
}

int ExprAttr::compare(ExprAttr other) const {
  if (*this == other || !*this || !other)
    return bool(*this) - bool(other);
  auto key = [](ExprAttr e) { return std::pair(e.getKind(), e.getNumber()); };
  if (key(*this) != key(other))
    return key(*this) < key(other) ? -1 : 1;
  int first = getLhs().compare(other.getLhs());
  return first ? first : getRhs().compare(other.getRhs());
}

ArrayAttr mlir::autodiff::toArray(MLIRContext *context,
                                  ArrayRef<ExprAttr> expressions) {
  return ArrayAttr::get(
      context, SmallVector<Attribute>(expressions.begin(), expressions.end()));
}

SmallVector<ExprAttr> mlir::autodiff::toExpressions(ArrayAttr array) {
  return llvm::to_vector(array.getAsRange<ExprAttr>());
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// The precedence of an operator; 0 if it is written in front of its operands.
static unsigned getPrecedence(Kind kind) {
  switch (kind) {
  case Kind::Add:
  case Kind::Sub:
    return 1;
  case Kind::Mul:
    return 2;
  default:
    return 0;
  }
}

/// `isTight`: whether an operand with an operator of the same precedence needs
/// parentheses.
static void printOperand(AsmPrinter &printer, ExprAttr operand, Kind kind,
                         bool isTight) {
  unsigned inner = getPrecedence(operand.getKind());
  bool isNested = inner && inner < getPrecedence(kind) + isTight;
  if (isNested)
    printer << "(";
  printExpr(printer, operand);
  if (isNested)
    printer << ")";
}

void mlir::autodiff::printExpr(AsmPrinter &printer, ExprAttr expr) {
  Kind kind = expr.getKind();
  llvm::StringRef name = stringifyExprKind(kind);
  int64_t number = expr.getNumber();
  if (kind == Kind::Constant) {
    printer << number;
    return;
  }
  if (getPrecedence(kind)) {
    printOperand(printer, expr.getLhs(), kind, /*isTight=*/false);
    printer << (kind == Kind::Add ? " + " : kind == Kind::Sub ? " - " : " * ");
    printOperand(printer, expr.getRhs(), kind, /*isTight=*/true);
    return;
  }
  printer << name;
  if (kind == Kind::Argument || kind == Kind::Grid || kind == Kind::ProgramId)
    printer << number;
  else if (kind == Kind::Counted)
    printer << "(" << number << ")";
  else if (!isWord(kind)) {
    llvm::ListSeparator comma;
    printer << "(";
    if (shapeOf(kind).number == Shape::Index)
      printer << llvm::StringRef(comma) << "arg" << number;
    for (ExprAttr operand : {expr.getLhs(), expr.getRhs()})
      if (operand) {
        printer << llvm::StringRef(comma);
        printExpr(printer, operand);
      }
    printer << ")";
  }
}

/// Splits a word like `arg3`; the number is -1 if there is none.
static std::pair<llvm::StringRef, int64_t> splitWord(llvm::StringRef word) {
  llvm::StringRef name = word.rtrim("0123456789");
  int64_t number = -1;
  if (word.drop_front(name.size()).getAsInteger(10, number))
    number = -1;
  return {name, number};
}

/// Parses `arg3`.
static ParseResult parseArgument(AsmParser &parser, int64_t &number) {
  llvm::StringRef word;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(&word)) ||
      splitWord(word).first != "arg" || splitWord(word).second < 0)
    return parser.emitError(loc, "expected an argument, as in 'arg0'");
  number = splitWord(word).second;
  return success();
}

/// Parses the operands in parentheses behind the name of `kind`.
static ParseResult parseOperands(AsmParser &parser, Kind kind, int64_t &number,
                                 SmallVectorImpl<ExprAttr> &operands) {
  Shape shape = shapeOf(kind);
  if (parser.parseLParen())
    return failure();
  bool isFirst = true;
  if (kind == Kind::Counted) {
    isFirst = false;
    if (parser.parseInteger(number))
      return failure();
  } else if (shape.number == Shape::Index) {
    isFirst = false;
    if (parseArgument(parser, number))
      return failure();
  }
  for (unsigned index = 0; index < shape.operands; ++index) {
    if (!isFirst && parser.parseComma())
      return failure();
    isFirst = false;
    if (parseExpr(parser, operands.emplace_back()))
      return failure();
  }
  return parser.parseRParen();
}

/// Parses an expression without binary operators.
static FailureOr<ExprAttr> parsePrimary(AsmParser &parser) {
  MLIRContext *context = parser.getContext();
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalLParen())) {
    ExprAttr inner;
    if (parseExpr(parser, inner) || parser.parseRParen())
      return failure();
    return inner;
  }
  int64_t number = 0;
  if (OptionalParseResult parsed = parser.parseOptionalInteger(number);
      parsed.has_value()) {
    if (failed(*parsed))
      return failure();
    return ExprAttr::get(context, number);
  }
  llvm::StringRef word;
  if (failed(parser.parseOptionalKeyword(&word)))
    return parser.emitError(loc, "expected a number, as in 'arg0 * 4'"),
           failure();
  auto [name, suffix] = splitWord(word);
  std::optional<Kind> kind = symbolizeExprKind(name);
  bool isNumbered =
      kind == Kind::Argument || kind == Kind::Grid || kind == Kind::ProgramId;
  if (!kind || kind == Kind::Constant || getPrecedence(*kind) ||
      isNumbered != (suffix >= 0))
    return parser.emitError(loc) << "'" << word << "' is no number of a launch",
           failure();
  SmallVector<ExprAttr, 2> operands;
  if (isNumbered)
    number = suffix;
  else if (!isWord(*kind) && parseOperands(parser, *kind, number, operands))
    return failure();
  operands.resize(2);
  ExprAttr expr = parser.getChecked<ExprAttr>(loc, context, *kind, number,
                                              operands[0], operands[1]);
  if (!expr)
    return failure();
  return expr;
}

static std::optional<Kind> parseOperator(AsmParser &parser,
                                         unsigned precedence) {
  if (precedence == 2)
    return succeeded(parser.parseOptionalStar()) ? std::optional(Kind::Mul)
                                                 : std::nullopt;
  if (succeeded(parser.parseOptionalPlus()))
    return Kind::Add;
  return succeeded(parser.parseOptionalMinus()) ? std::optional(Kind::Sub)
                                                : std::nullopt;
}

/// Parses operators of this precedence or a higher one.
static FailureOr<ExprAttr> parseOperation(AsmParser &parser,
                                          unsigned precedence) {
  if (precedence > 2)
    return parsePrimary(parser);
  llvm::SMLoc loc = parser.getCurrentLocation();
  FailureOr<ExprAttr> lhs = parseOperation(parser, precedence + 1);
  while (succeeded(lhs)) {
    std::optional<Kind> kind = parseOperator(parser, precedence);
    if (!kind)
      break;
    FailureOr<ExprAttr> rhs = parseOperation(parser, precedence + 1);
    if (failed(rhs))
      return failure();
    ExprAttr whole = parser.getChecked<ExprAttr>(loc, parser.getContext(),
                                                 *kind, int64_t(0), *lhs, *rhs);
    if (!whole)
      return failure();
    lhs = whole;
  }
  return lhs;
}

ParseResult mlir::autodiff::parseExpr(AsmParser &parser, ExprAttr &expr) {
  FailureOr<ExprAttr> parsed = parseOperation(parser, 1);
  if (failed(parsed))
    return failure();
  expr = *parsed;
  return success();
}

Attribute ExprAttr::parse(AsmParser &parser, Type) {
  ExprAttr expr;
  if (parser.parseLess() || parseExpr(parser, expr) || parser.parseGreater())
    return {};
  return expr;
}

void ExprAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printExpr(printer, *this);
  printer << ">";
}
