//===- ExprText.h - Expressions and lists as text ---------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_DIALECT_EXPRTEXT_H
#define AUTODIFF_LIB_DIALECT_EXPRTEXT_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/IR/DialectImplementation.h"

namespace mlir::autodiff {

/// An expression without brackets, for attributes that contain expressions.
void printExpr(AsmPrinter &printer, ExprAttr expr);
ParseResult parseExpr(AsmParser &parser, ExprAttr &expr);

/// A list of attributes without their names: `[arg0, 4]`, `[<1 x 8>]`. An
/// unknown reach is a question mark.
template <typename AttrT>
void printList(AsmPrinter &printer, ArrayRef<AttrT> list) {
  printer << "[";
  llvm::interleaveComma(list, printer, [&](AttrT each) {
    if (!each)
      printer << "?";
    else if constexpr (std::is_same_v<AttrT, ExprAttr>)
      printExpr(printer, each);
    else
      printer.printStrippedAttrOrType(each);
  });
  printer << "]";
}
template <typename AttrT>
ParseResult parseList(AsmParser &parser, SmallVectorImpl<AttrT> &list) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        AttrT &each = list.emplace_back();
        if constexpr (std::is_same_v<AttrT, ReachAttr>)
          if (succeeded(parser.parseOptionalQuestion()))
            return success();
        if constexpr (std::is_same_v<AttrT, ExprAttr>)
          return parseExpr(parser, each);
        else
          return parser.parseCustomAttributeWithFallback(each);
      });
}

/// A list of expressions in an operation.
void printNumbers(OpAsmPrinter &printer, Operation *op, ArrayAttr numbers);
ParseResult parseNumbers(OpAsmParser &parser, ArrayAttr &numbers);

/// The items of a plan, of which there may be none.
void printItems(OpAsmPrinter &printer, Operation *op, Region &body);
ParseResult parseItems(OpAsmParser &parser, Region &body);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_DIALECT_EXPRTEXT_H
