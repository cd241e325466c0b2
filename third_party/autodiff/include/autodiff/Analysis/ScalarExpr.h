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

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include "llvm/Support/JSON.h"
#include <memory>
#include <optional>

namespace mlir::autodiff {

class ScalarExpr {
public:
  enum class Kind {
    Constant,
    Argument,
    Grid,
    ProgramId,
    Size,    ///< what only the launch can evaluate, as JSON
    Element, ///< the integer that memory holds at a place, from an argument on
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    CeilDiv,
    Min,
    Max
  };

  /// Where integers may come from: what a launch is given, or memory that it
  /// can read as well (which it has to wait for).
  enum class From { Launch, Memory };

  static ScalarExpr constant(int64_t value);
  static ScalarExpr argument(unsigned index);
  static ScalarExpr grid(unsigned axis);
  static ScalarExpr programId(unsigned axis);
  /// An expression of the plan of any kind.
  static ScalarExpr size(llvm::StringRef json);
  /// What memory holds `place` integers after where an argument points to.
  static ScalarExpr element(unsigned argument, ScalarExpr place);
  /// `lhs kind rhs`, folded where that is exact. Div and Rem truncate as in C.
  static ScalarExpr binary(Kind kind, ScalarExpr lhs, ScalarExpr rhs);

  /// The expression that computes `value`, if it depends on nothing but
  /// arguments, the grid and program ids, and, `from` memory, on integers that
  /// the kernel loads at such places and does not write to.
  static std::optional<ScalarExpr> of(Value value, From from = From::Launch);

  Kind getKind() const;
  /// Whether this is not made of others.
  bool isLeaf() const;
  /// The operands of what `binary` makes.
  ScalarExpr getLhs() const;
  ScalarExpr getRhs() const;

  std::optional<int64_t> getConstant() const;
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
  llvm::json::Value toJSON() const;
  /// Computes this in a kernel with these arguments, as an i64.
  Value emit(OpBuilder &builder, Location loc, ValueRange arguments) const;

  bool operator==(const ScalarExpr &other) const;
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
  /// Whether a leaf of this kind occurs.
  bool mentions(Kind leaf) const;
  /// The product, with its factors in an order of their own and a number last.
  static ScalarExpr multiply(const ScalarExpr &lhs, const ScalarExpr &rhs);

  struct Node;
  explicit ScalarExpr(std::shared_ptr<const Node> node)
      : node(std::move(node)) {}
  std::shared_ptr<const Node> node;
};

/// The number of iterations of `for (i = lower; i < upper; i += step)`.
ScalarExpr tripCount(ScalarExpr lower, ScalarExpr upper, ScalarExpr step);

/// Adds a number that a launch must not make negative to `assumed`, once.
inline void addAssumption(llvm::SmallVectorImpl<ScalarExpr> &assumed,
                          const ScalarExpr &number) {
  if (!llvm::is_contained(assumed, number))
    assumed.push_back(number);
}

/// An expression or another part of the plan as an attribute.
StringAttr toAttribute(MLIRContext *context, llvm::json::Value json);
/// What `toAttribute` has been given.
llvm::json::Value fromAttribute(Attribute attribute);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SCALAREXPR_H
