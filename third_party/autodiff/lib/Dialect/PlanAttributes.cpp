//===- PlanAttributes.cpp - Parts of a plan -------------------------------===//
#include "ExprText.h"

using namespace mlir;
using namespace mlir::autodiff;

Attribute DigitAttr::parse(AsmParser &parser, Type) {
  ExprAttr stride, extent;
  DigitOwner owner = DigitOwner::Any;
  unsigned number = 0;
  if (parser.parseLess() || parseExpr(parser, stride) ||
      parser.parseKeyword("x") ||
      (failed(parser.parseOptionalQuestion()) && parseExpr(parser, extent)))
    return {};
  if (succeeded(parser.parseOptionalKeyword("of"))) {
    llvm::SMLoc loc = parser.getCurrentLocation();
    llvm::StringRef word;
    if (parser.parseKeyword(&word))
      return {};
    std::optional<DigitOwner> found = symbolizeDigitOwner(word);
    if (!found || found == DigitOwner::Any) {
      parser.emitError(loc, "expected 'axis', 'loop' or 'program'");
      return {};
    }
    owner = *found;
    if (owner != DigitOwner::Program && parser.parseInteger(number))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), stride, extent, owner, number);
}

void DigitAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printExpr(printer, getStride());
  printer << " x ";
  if (getExtent())
    printExpr(printer, getExtent());
  else
    printer << "?";
  if (getOwner() != DigitOwner::Any)
    printer << " of " << stringifyDigitOwner(getOwner());
  if (getOwner() == DigitOwner::Axis || getOwner() == DigitOwner::Loop)
    printer << " " << getNumber();
  printer << ">";
}

CheckAttr CheckAttr::ofPrograms(ArrayRef<ExprAttr> programs,
                                unsigned summed) const {
  return get(getContext(), getKind(), getArgument(), getOffset(), getDims(),
             getNotNegative(), getMoves(), programs, summed, getWhole(),
             getWithin());
}

CheckAttr CheckAttr::within(ArrayRef<LimitAttr> limits) const {
  return get(getContext(), getKind(), getArgument(), getOffset(), getDims(),
             getNotNegative(), getMoves(), getPrograms(), getSummed(),
             getWhole(), limits);
}

CheckAttr CheckAttr::aboutWhole() const {
  return get(getContext(), getKind(), getArgument(), getOffset(), getDims(),
             getNotNegative(), getMoves(), getPrograms(), getSummed(),
             /*whole=*/true, getWithin());
}

GradientAttr GradientAttr::withMargin(int64_t margin) const {
  return get(getContext(), getArgument(), getElementType(), getInit(),
             getAccumulate(), getPartials(), getReturned(), getOverwritten(),
             getRemainder(), getConfined(), margin, getChecks(), getReach());
}

LogicalResult
NextAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                 ArrayRef<ExprAttr> notNegative, Failure failure,
                 int64_t argument, RequestKey key, ArrayRef<ExprAttr> value) {
  bool isOfOne = llvm::is_contained(
      {Failure::Gradient, Failure::Output, Failure::Reach}, failure);
  if (isOfOne != (argument >= 0))
    return emitError() << "'" << stringifyFailure(failure) << "' is of "
                       << (isOfOne ? "an" : "no") << " argument";
  bool isFlag =
      llvm::is_contained({RequestKey::Assume, RequestKey::Reload,
                          RequestKey::Checkpoint, RequestKey::Deterministic},
                         key);
  if (isFlag && (value.size() != 1 ||
                 !(value[0].isConstant(0) || value[0].isConstant(1))))
    return emitError() << "'" << stringifyRequestKey(key) << "' is 0 or 1";
  bool isList = llvm::is_contained(
      {RequestKey::Atomic, RequestKey::Repeated, RequestKey::Confine}, key);
  if (isList && (value.empty() || !llvm::all_of(value, [](ExprAttr argument) {
                   return argument.getConstant().value_or(-1) >= 0;
                 })))
    return emitError() << "'" << stringifyRequestKey(key)
                       << "' is a list of arguments";
  if (key == RequestKey::None && !value.empty())
    return emitError() << "a value of no key";
  return success();
}

LogicalResult AutodiffDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                        unsigned,
                                                        NamedAttribute named) {
  Attribute value = named.getValue();
  if (named.getName() != kOperandAttr || isa<OperandAttr>(value))
    return success();
  return op->emitError() << "'" << named.getName().getValue()
                         << "' of an argument cannot "
                         << "be " << value;
}
