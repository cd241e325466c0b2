//===- CombinerLaws.h - In which orders a function combines -----*- C++ -*-===//
#ifndef AUTODIFF_RULES_COMBINERLAWS_H
#define AUTODIFF_RULES_COMBINERLAWS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::autodiff {

/// Of a module: the device combines what is reduced in any order, sides
/// swapped.
constexpr llvm::StringLiteral kAnyOrderAttr = "autodiff.any_order";

/// What the combine function ∘ of a reduction or scan is on samples of the
/// tuples that it combines. A law holds if no sample contradicts it.
struct CombinerLaws {
  /// x∘(y∘z) = (x∘y)∘z
  bool associative = true;
  /// x∘y = y∘x
  bool commutative = true;
  /// x∘x = x
  bool idempotent = true;
  /// What ∘ makes of the same elements in two orders, if it is not associative.
  std::string counterexample;
  /// The operation of ∘ that could not be evaluated for any sample; all laws
  /// are void then.
  Operation *unknown = nullptr;
};

/// Tries the combine function of `op` on samples of what it combines; those of
/// the members that carry a derivative, `active`, are any numbers.
CombinerLaws tryCombiner(Operation *op, const llvm::BitVector &active);

/// What the derivative of a reduction or scan may take for granted.
enum class Combination {
  /// The elements may be combined in any tree, in their order.
  Associative,
  /// All elements are the same, and so is what any of them are combined to.
  Idempotent
};

/// Emits an error if the result of `op`, a reduction or scan along `axis`,
/// depends on an order that Triton does not keep.
FailureOr<Combination> requireOrder(Operation *op, unsigned axis,
                                    const llvm::BitVector &active);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_COMBINERLAWS_H
