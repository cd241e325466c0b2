//===- LinearForm.h - Indices as sums over an iteration space ---*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_LINEARFORM_H
#define AUTODIFF_ANALYSIS_LINEARFORM_H

#include "autodiff/Analysis/Reason.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::triton {
class AxisMap;
} // namespace mlir::triton

namespace mlir::autodiff {

/// One dimension of the iteration space that an access runs over.
struct Dimension {
  enum class Kind {
    Axis,    ///< a position along an axis of the tile
    Loop,    ///< the number of an iteration
    Index,   ///< an induction variable whose start depends on program ids
    Program, ///< a number that program ids determine
    Place,   ///< a number that an autodiff.programs gives
    Scalar,  ///< a scalar that is taken as it is
    Site     ///< which of several accesses it is
  };
  Kind kind;
  unsigned axis = 0;               ///< of an Axis; the number of a Place
  Operation *loop = nullptr;       ///< of a Loop or an Index
  std::optional<ScalarExpr> digit; ///< of a Program: the number
  Value scalar;                    ///< of a Scalar

  /// Whether it is never negative, as far as is known. (An Index may start
  /// below zero, and a Scalar may be anything.)
  bool isNotNegative() const {
    return digit ? digit->isNotNegative()
                 : kind != Kind::Index && kind != Kind::Scalar;
  }
  /// Whether it is an element of memory, or computed from one.
  bool readsMemory() const { return digit && digit->readsMemory(); }
  bool operator==(const Dimension &other) const {
    return kind == other.kind && axis == other.axis && loop == other.loop &&
           digit == other.digit && scalar == other.scalar;
  }
};

/// constant + Σ coefficient · dimension, for every element of a tile, as `pid *
/// 64 + lane`. Coefficients and the constant are known when the kernel is
/// launched, and the same for all programs.
struct LinearForm {
  struct Term {
    Dimension dimension;
    ScalarExpr coefficient;
  };
  ScalarExpr constant = ScalarExpr::constant(0);
  llvm::SmallVector<Term> terms;

  /// The linear form of an integer, a pointer (counted in elements from its
  /// base) or a tile of these; fails if it is not such a sum. Scalars for which
  /// `isOpaque` holds are dimensions of their own. If `from` allows to read
  /// memory, a loaded integer whose address depends on program ids alone is a
  /// dimension, too.
  static ReasonOr<LinearForm>
  of(Value value, llvm::function_ref<bool(Value)> isOpaque = {},
     ScalarExpr::From from = ScalarExpr::From::Launch);

  /// If the start of a loop depends on the program, replaces its induction
  /// variable by start + step · (number of the iteration). False if a start has
  /// no linear form.
  bool unfold(ScalarExpr::From from = ScalarExpr::From::Launch);

  bool isConstant() const { return terms.empty(); }
  /// Whether a dimension is an element of memory, or computed from one.
  bool readsMemory() const;
  /// The coefficient of a dimension; none if the form does not depend on it.
  std::optional<ScalarExpr> coefficientOf(const Dimension &dimension) const;
  /// By how much it grows from one iteration of `loop` to the next.
  ScalarExpr getStep(Operation *loop) const;
  /// Whether its constant coefficients show that every value is a multiple of
  /// `step`.
  bool isMultipleOf(int64_t step) const;
  /// Whether the forms are equal term by term.
  bool operator==(const LinearForm &other) const;
  LinearForm operator+(const LinearForm &other) const;
  LinearForm scaled(const ScalarExpr &factor) const;
  LinearForm operator-(const LinearForm &other) const {
    return *this + other.scaled(ScalarExpr::constant(-1));
  }
  /// Turns the form of an operand into that of the result which has its
  /// elements.
  void moveAxes(const triton::AxisMap &map);
  /// Renumbers the tile's axes; `map` gives the new number of each.
  void renumberAxes(llvm::function_ref<unsigned(unsigned)> map);
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_LINEARFORM_H
