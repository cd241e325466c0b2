//===- Tangents.h - What a rule sees while tangents go forward --*- C++ -*-===//
#ifndef AUTODIFF_RULES_TANGENTS_H
#define AUTODIFF_RULES_TANGENTS_H

#include "autodiff/Rules/Differentiation.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::autodiff {

/// The state of pushing tangents forward through one kernel, beside the primal
/// values that they belong to.
///
/// Memory has tangents, too, with the addressing of what they belong to: that
/// of a pointer is the pointer to the tangents of what it points to.
class Tangents : public Differentiation {
public:
  using Differentiation::Differentiation;

  /// Whether `value` has a tangent that may be other than zero: an active
  /// float, or a pointer to memory that has tangents.
  bool exists(Value value) const;

  /// The tangent of `value`; null means zero, or of a pointer, that there is
  /// none.
  Value get(Value value) const { return tangents.lookup(value); }
  SmallVector<Value> get(ValueRange values) const;
  /// The same, but never null, of a float or tile of floats.
  Value getOrZero(Value value);

  /// Adds to the tangent of `result`. Ignored if that is not active; null adds
  /// nothing.
  void add(Value result, Value contribution);

  /// Replaces the tangent of `value`.
  void set(Value value, Value tangent) { tangents[value] = tangent; }

  /// What control flow hands on: `values` in the derived kernel, each with its
  /// tangent behind it, if what it becomes, of `targets`, has one.
  SmallVector<Value> pair(ValueRange values, ValueRange targets);
  SmallVector<Type> pairTypes(ValueRange targets) const;
  /// Makes known that `values` and their tangents are these.
  void bind(ValueRange values, ValueRange pairs, ValueRange targets);

  /// Appends the operations of `block`, without its terminator, and their
  /// tangents.
  LogicalResult push(Block &block);

private:
  LogicalResult push(Operation &op);
  void pushPointer(Operation &op);

  llvm::DenseMap<Value, Value> tangents;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_TANGENTS_H
