//===- ScalarExpr.h - Integers that a launch can evaluate -------*- C++ -*-===//
//
// Symbolic scalar integers over what is known when a kernel is launched: its
// scalar arguments, its grid, and (for facts about all programs) the program
// ids. They are how the plan speaks about sizes, strides and bounds. Where a
// launch may look into memory, they are over integers in there, too.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_SCALAREXPR_H
#define AUTODIFF_ANALYSIS_SCALAREXPR_H

#include "autodiff/Dialect/Expr.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace mlir::autodiff {

/// A number or an ExprAttr, folded where that is exact. What is no integer of
/// 64 bits (a quotient by zero, a sum of numbers that is too large) has no
/// value: it is equal to nothing, and what is made of it has none, either.
class ScalarExpr {
public:
  using Kind = ExprKind;

  /// Where integers may come from: what a launch is given, or memory that it
  /// can read as well (which it has to wait for).
  enum class From { Launch, Memory };

  explicit ScalarExpr(ExprAttr expr);

  static ScalarExpr constant(int64_t value) { return ScalarExpr(value); }
  static ScalarExpr argument(MLIRContext *context, unsigned index);
  static ScalarExpr grid(MLIRContext *context, unsigned axis);
  static ScalarExpr programId(MLIRContext *context, unsigned axis);
  /// `lhs kind rhs`, folded where that is exact. Div and Rem truncate as in C.
  static ScalarExpr binary(Kind kind, ScalarExpr lhs, ScalarExpr rhs);

  /// The expression that computes `value`, if it depends on nothing but
  /// arguments, the grid and program ids, and, `from` memory, on integers that
  /// the kernel loads at such places and does not write to.
  static std::optional<ScalarExpr> of(Value value, From from = From::Launch);

  Kind getKind() const;
  /// The operands of what `binary` makes.
  ScalarExpr getLhs() const { return ScalarExpr(expr.getLhs()); }
  ScalarExpr getRhs() const { return ScalarExpr(expr.getRhs()); }
  /// What this is made of in a program: what is the same in all of them, or
  /// only a launch can evaluate, is not taken apart.
  SmallVector<ScalarExpr, 2> getOperands() const;
  /// This for the plan.
  ExprAttr get(MLIRContext *context) const;
  /// The same of what is no number.
  ExprAttr getExpr() const { return get(nullptr); }

  std::optional<int64_t> getConstant() const { return number; }
  /// The expression that this is a multiple of, and the multiple.
  std::pair<ScalarExpr, int64_t> asMultiple() const;
  /// The number that `divisor` times is this, if that is seen.
  std::optional<ScalarExpr> dividedBy(const ScalarExpr &divisor) const;
  /// How many times the sum that this is contains `unit`, which is none.
  int64_t countOf(const ScalarExpr &unit) const;
  /// Whether arguments and the grid alone do not tell: a program id or memory
  /// does.
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
  /// The size of the grid along the axis of a program id.
  ScalarExpr getGrid() const { return grid(expr.getContext(), getAxis()); }
  /// Computes this in a kernel with these arguments, as an i64.
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
  /// Whether a part of this kind occurs.
  bool mentions(Kind part) const;
  /// The product, with its factors in an order of their own and a number last.
  static ScalarExpr multiply(const ScalarExpr &lhs, const ScalarExpr &rhs);
  /// `lhs kind rhs` as it is; of two numbers it has no value.
  static ScalarExpr make(Kind kind, const ScalarExpr &lhs,
                         const ScalarExpr &rhs);

  ExprAttr expr;                 // null for numbers
  std::optional<int64_t> number; // none for expressions
};

/// The number of iterations of `for (i = lower; i < upper; i += step)`.
ScalarExpr tripCount(ScalarExpr lower, ScalarExpr upper, ScalarExpr step);

/// The largest value of a number in any program.
ExprAttr mostOfPrograms(MLIRContext *context, const ScalarExpr &number);

/// Adds a number that a launch must not make negative to `assumed`, once.
inline void addAssumption(llvm::SmallVectorImpl<ScalarExpr> &assumed,
                          const ScalarExpr &number) {
  if (!llvm::is_contained(assumed, number))
    assumed.push_back(number);
}

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SCALAREXPR_H
