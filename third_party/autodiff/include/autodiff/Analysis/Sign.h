//===- Sign.h - Values that cannot be negative ------------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_SIGN_H
#define AUTODIFF_ANALYSIS_SIGN_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

enum class Sign { Unknown, NotNegative, Positive };

/// What is known of a float's sign from the operations that compute it, in
/// exact arithmetic: exponentials are positive, and so are their sums. A loop's
/// result has the sign that its value has after an iteration.
class Signs {
public:
  Sign of(Value value);

private:
  Sign compute(Value value);
  Sign ofLoop(OpResult result);

  llvm::DenseMap<Value, Sign> known;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_SIGN_H
