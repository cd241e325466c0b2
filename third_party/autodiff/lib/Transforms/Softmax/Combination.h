//===- Combination.h - Sums of multiples of values and logs -----*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SOFTMAX_COMBINATION_H
#define AUTODIFF_LIB_TRANSFORMS_SOFTMAX_COMBINATION_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::autodiff {

/// Σ aᵢ·xᵢ + Σ bᵢ·log(yᵢ), whatever of these is not zero.
class Combination {
public:
  /// `value` as a combination of values that are none themselves. Residuals are
  /// what they name.
  static Combination of(Value value);

  /// The factors of a value and of its logarithm.
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
  /// How many more values are looked into: a graph has any number of paths.
  unsigned budget = 64;
};

/// `unit` · log(sum).
Value createLog(OpBuilder &b, Value sum, double unit);

/// What a residual names.
Value withoutResidual(Value value);

/// Whether two numbers of `type` are the same, but for how they are rounded.
bool areClose(double a, double b, Type type);

/// x and c if `value` is x · c for a number c; else itself and 1.
std::pair<Value, double> matchMultiple(Value value);

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SOFTMAX_COMBINATION_H
