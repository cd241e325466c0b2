//===- CombinerLaws.h - In which orders a function combines -----*- C++ -*-===//
#ifndef AUTODIFF_RULES_COMBINERLAWS_H
#define AUTODIFF_RULES_COMBINERLAWS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::autodiff {

/// Attribute of a module whose device reduces in any order, with the arguments
/// of the combine function swapped or not.
constexpr llvm::StringLiteral kAnyOrderAttr = "autodiff.any_order";

/// Laws of the combine function ∘ of a reduction or scan, found out by
/// evaluating it on samples. A law holds if no sample contradicts it.
struct CombinerLaws {
  /// x∘(y∘z) = (x∘y)∘z
  bool associative = true;
  /// x∘y = y∘x
  bool commutative = true;
  /// x∘x = x
  bool idempotent = true;
  /// Two results for the same elements in different orders, if ∘ is not
  /// associative.
  std::string counterexample;
  /// An operation of ∘ that could not be evaluated for any sample; then nothing
  /// is known about the laws.
  Operation *unknown = nullptr;
};

/// Evaluates the combine function of `op` on samples. Members of the tuple that
/// carry a derivative, `active`, get arbitrary numbers.
CombinerLaws tryCombiner(Operation *op, const llvm::BitVector &active);

/// What the derivative of a reduction or scan may assume.
enum class Combination {
  /// The elements may be combined in any tree that keeps their order.
  Associative,
  /// All elements are equal, and any combination of them equals each.
  Idempotent
};

/// Emits an error if the result of `op`, a reduction or scan along `axis`,
/// depends on an order that Triton does not guarantee.
FailureOr<Combination> requireOrder(Operation *op, unsigned axis,
                                    const llvm::BitVector &active);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_COMBINERLAWS_H
