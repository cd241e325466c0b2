//===- ScalarExpr.h - Integers that a launch can evaluate -------*- C++ -*-===//
//
// Symbolic integers over what is known when a kernel is launched: its scalar
// arguments, its grid, and (for facts about all programs) the program ids. The
// plan uses them for sizes, strides and bounds. Where a launch may read memory,
// loaded integers may occur, too.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_SCALAREXPR_H
#define AUTODIFF_ANALYSIS_SCALAREXPR_H

#include "autodiff/Dialect/Expr.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace mlir::autodiff {

/// A constant or an ExprAttr, folded where that is exact. What does not fit
/// into 64 bits (a sum that overflows) or is undefined (a quotient by zero) has
/// no value: it equals nothing, and expressions that contain it have no value,
/// either.
class ScalarExpr {
public:
  using Kind = ExprKind;

  /// Where integers may come from: the arguments and grid of a launch, or also
  /// memory, which a launch has to wait for to read it.
  enum class From { Launch, Memory };

  explicit ScalarExpr(ExprAttr expr);

  static ScalarExpr constant(int64_t value) { return ScalarExpr(value); }
  static ScalarExpr argument(MLIRContext *context, unsigned index);
  static ScalarExpr grid(MLIRContext *context, unsigned axis);
  static ScalarExpr programId(MLIRContext *context, unsigned axis);
  /// `lhs kind rhs`, folded where that is exact. Div and Rem truncate as in C.
  static ScalarExpr binary(Kind kind, ScalarExpr lhs, ScalarExpr rhs);

  /// The expression for `value`, if it depends on nothing but arguments, the
  /// grid and program ids. With `From::Memory`, it may also depend on integers
  /// that the kernel loads from addresses of that kind, and does not write to.
  static std::optional<ScalarExpr> of(Value value, From from = From::Launch);

  Kind getKind() const;
  /// The operands of a binary expression.
  ScalarExpr getLhs() const { return ScalarExpr(expr.getLhs()); }
  ScalarExpr getRhs() const { return ScalarExpr(expr.getRhs()); }
  /// The operands of an expression that differs from program to program. An
  /// expression that is the same in all programs, or that only a launch can
  /// evaluate, has none.
  SmallVector<ScalarExpr, 2> getOperands() const;
  /// This as an attribute of the plan.
  ExprAttr get(MLIRContext *context) const;
  /// This as an attribute; not for constants.
  ExprAttr getExpr() const { return get(nullptr); }

  std::optional<int64_t> getConstant() const { return number; }
  /// Writes this as factor · expression; returns both.
  std::pair<ScalarExpr, int64_t> asMultiple() const;
  /// The quotient, if this is recognised as a multiple of `divisor`.
  std::optional<ScalarExpr> dividedBy(const ScalarExpr &divisor) const;
  /// How often the term `unit`, which is no sum, occurs in this sum.
  int64_t countOf(const ScalarExpr &unit) const;
  /// Whether a program id or memory occurs, so that arguments and grid do not
  /// determine this.
  bool dependsOnProgramId() const;
  /// Whether an element of memory occurs.
  bool readsMemory() const { return mentions(Kind::Element); }
  /// Whether the size of the grid occurs.
  bool dependsOnGrid() const { return mentions(Kind::Grid); }
  /// Whether this is never negative, whatever the arguments.
  bool isNotNegative() const;
  /// Whether the id along `axis` of the grid occurs.
  bool mentionsAxis(unsigned axis) const;
  /// Whether this is a program id itself.
  bool isProgramId() const;
  /// The axis of a program id or size of the grid.
  unsigned getAxis() const;
  /// The size of the grid along this program id's axis.
  ScalarExpr getGrid() const { return grid(expr.getContext(), getAxis()); }
  /// Emits IR that computes this in a kernel with these arguments, as an i64.
  Value emit(OpBuilder &builder, Location loc, ValueRange arguments) const;

  bool operator==(const ScalarExpr &other) const {
    return hasValue() && expr == other.expr && number == other.number;
  }
  ScalarExpr operator+(const ScalarExpr &o) const {
    return binary(Kind::Add, *this, o);
  }
  ScalarExpr operator-(const ScalarExpr &o) const {
    return binary(Kind::Sub, *this, o);
  }
  ScalarExpr operator*(const ScalarExpr &o) const {
    return binary(Kind::Mul, *this, o);
  }

private:
  explicit ScalarExpr(int64_t number) : number(number) {}
  ScalarExpr() = default; // without a value
  bool hasValue() const { return expr || number; }
  /// Whether a subexpression of this kind occurs.
  bool mentions(Kind part) const;
  /// The product with sorted factors, and a constant last.
  static ScalarExpr multiply(const ScalarExpr &lhs, const ScalarExpr &rhs);
  /// `lhs kind rhs` without folding; the two must not both be constants.
  static ScalarExpr make(Kind kind, const ScalarExpr &lhs,
                         const ScalarExpr &rhs);

  ExprAttr expr;                 // null for numbers
  std::optional<int64_t> number; // none for expressions
};

/// The number of iterations of `for (i = lower; i < upper; i += step)`.
ScalarExpr tripCount(ScalarExpr lower, ScalarExpr upper, ScalarExpr step);

/// The largest value of an expression over all programs.
ExprAttr mostOfPrograms(MLIRContext *context, const ScalarExpr &number);

/// Adds to `assumed` a number that must not be negative at launch, once.
inline void addAssumption(llvm::SmallVectorImpl<ScalarExpr> &assumed,
                          const ScalarExpr &number) {
  if (!llvm::is_contained(assumed, number))
    assumed.push_back(number);
}

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SCALAREXPR_H
