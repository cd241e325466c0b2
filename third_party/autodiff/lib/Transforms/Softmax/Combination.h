//===- Combination.h - Sums of multiples of values and logs -----*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_COMBINATION_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_COMBINATION_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::autodiff {

/// A linear combination Σ aᵢ·xᵢ + Σ bᵢ·log(yᵢ) with nonzero coefficients.
class Combination {
public:
  /// `value` as a linear combination of values that are none themselves. A
  /// residual counts as its operand.
  static Combination of(Value value);

  /// The coefficients of a value and of its logarithm.
  double factorOf(Value value) const { return find(value, false); }
  double factorOfLog(Value value) const { return find(value, true); }
  unsigned size() const { return terms.size(); }
  /// S, if this is `center` + `unit`·log(S); else null.
  Value getSum(Value center, double unit) const;

private:
  struct Term {
    Value of;
    bool isLogarithm;
    double factor;
  };
  double find(Value value, bool isLogarithm) const;
  void add(Value value, double factor);
  void addTerm(Term term);

  SmallVector<Term, 2> terms;
  /// How many more values are visited: a graph may have any number of paths.
  unsigned budget = 64;
};

/// `unit` · log(sum).
Value createLog(OpBuilder &b, Value sum, double unit);

/// The operand of a residual, or the value itself.
Value withoutResidual(Value value);

/// Whether two numbers of `type` are equal up to rounding.
bool areClose(double a, double b, Type type);

/// x and c if `value` is x · c for a constant c; otherwise the value and 1.
std::pair<Value, double> matchMultiple(Value value);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_COMBINATION_H
