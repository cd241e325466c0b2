//===- Expr.h - Making integers that a launch can evaluate ------*- C++ -*-===//
//
// Functions that make an ExprAttr of the kind that they are named for. They do
// not fold, so that a plan has what a pass has written. ScalarExpr folds.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_DIALECT_EXPR_H
#define AUTODIFF_DIALECT_EXPR_H

#include "autodiff/Dialect/Autodiff.h"

namespace mlir::autodiff {

/// An expression or a constant.
class ExprOperand {
public:
  ExprOperand(ExprAttr expr) : expr(expr) {}
  ExprOperand(int64_t number) : number(number) {}

  bool isNumber() const { return !expr; }
  ExprAttr get(MLIRContext *context) const {
    return expr ? expr : ExprAttr::get(context, number);
  }
  MLIRContext *getContext() const { return expr.getContext(); }

private:
  ExprAttr expr;
  int64_t number = 0;
};

/// At least one operand is no constant.
inline ExprAttr makeExpr(ExprKind kind, ExprOperand a, ExprOperand b) {
  MLIRContext *context = a.isNumber() ? b.getContext() : a.getContext();
  return ExprAttr::get(kind, a.get(context), b.get(context));
}
inline ExprAttr addOf(ExprOperand a, ExprOperand b) {
  return makeExpr(ExprKind::Add, a, b);
}
inline ExprAttr subOf(ExprOperand a, ExprOperand b) {
  return makeExpr(ExprKind::Sub, a, b);
}
inline ExprAttr mulOf(ExprOperand a, ExprOperand b) {
  return makeExpr(ExprKind::Mul, a, b);
}
inline ExprAttr divOf(ExprOperand a, ExprOperand b) {
  return makeExpr(ExprKind::Div, a, b);
}
inline ExprAttr remOf(ExprOperand a, ExprOperand b) {
  return makeExpr(ExprKind::Rem, a, b);
}
inline ExprAttr ceilDivOf(ExprOperand a, ExprOperand b) {
  return makeExpr(ExprKind::CeilDiv, a, b);
}
inline ExprAttr minOf(ExprOperand a, ExprOperand b) {
  return makeExpr(ExprKind::Min, a, b);
}
inline ExprAttr maxOf(ExprOperand a, ExprOperand b) {
  return makeExpr(ExprKind::Max, a, b);
}
/// The largest power of two of which a multiple lies from `a` to `b`.
inline ExprAttr coarsestOf(ExprOperand a, ExprOperand b) {
  return makeExpr(ExprKind::Coarsest, a, b);
}
/// The least power of two that is not below `a`: there is exactly one from a to
/// 2a − 1.
inline ExprAttr powerOfTwoFrom(ExprOperand a) {
  return coarsestOf(a, subOf(mulOf(2, a), 1));
}
/// The size of the grid along an axis.
inline ExprAttr gridOf(MLIRContext *context, unsigned axis) {
  return ExprAttr::get(context, ExprKind::Grid, axis);
}

/// Converts between lists of expressions and array attributes.
ArrayAttr toArray(MLIRContext *context, ArrayRef<ExprAttr> expressions);
SmallVector<ExprAttr> toExpressions(ArrayAttr array);

} // namespace mlir::autodiff

#endif // AUTODIFF_DIALECT_EXPR_H
