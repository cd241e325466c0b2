//===- Tangents.h - What a rule sees while tangents go forward --*- C++ -*-===//
#ifndef AUTODIFF_RULES_TANGENTS_H
#define AUTODIFF_RULES_TANGENTS_H

#include "autodiff/Rules/Differentiation.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

/// The state of pushing tangents forward through one kernel, with the values of
/// the original kernel, the primal.
///
/// Memory has tangents, too, with the same addressing: the tangent of a pointer
/// points to the tangents of what the pointer points to.
class Tangents : public Differentiation {
public:
  using Differentiation::Differentiation;

  /// Whether `value` has a tangent that may be other than zero: an active
  /// float, or a pointer to memory that has tangents.
  bool exists(Value value) const;

  /// The tangent of `value`; null for zero, and for a pointer without one.
  Value get(Value value) const { return tangents.lookup(value); }
  SmallVector<Value> get(ValueRange values) const;
  /// The same for a float or tile of floats, with zeros instead of null.
  Value getOrZero(Value value);

  /// Adds to the tangent of `result`. Does nothing if the result is not active,
  /// or the contribution is null.
  void add(Value result, Value contribution);

  /// Replaces the tangent of `value`.
  void set(Value value, Value tangent) { tangents[value] = tangent; }

  /// What a loop or branch passes on: `values` in the derived kernel, each
  /// followed by its tangent if the value of `targets` that it becomes has one.
  SmallVector<Value> pair(ValueRange values, ValueRange targets);
  SmallVector<Type> pairTypes(ValueRange targets) const;
  /// Sets the tangents of `values`, which are in `pairs` as `pair` makes them.
  void bind(ValueRange values, ValueRange pairs, ValueRange targets);

  /// Appends the operations of `block`, without its terminator, each with the
  /// operations for its tangents.
  LogicalResult push(Block &block);

private:
  LogicalResult push(Operation &op);
  void pushPointer(Operation &op);

  llvm::DenseMap<Value, Value> tangents;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_TANGENTS_H
