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
