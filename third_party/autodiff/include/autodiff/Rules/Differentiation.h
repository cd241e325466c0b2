//===- Differentiation.h - What a rule sees, either way ---------*- C++ -*-===//
#ifndef AUTODIFF_RULES_DIFFERENTIATION_H
#define AUTODIFF_RULES_DIFFERENTIATION_H

#include "autodiff/Analysis/Activity.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::autodiff {

/// The state of deriving one kernel from another, the primal: a builder
/// positioned in the derived kernel, and the primal's values there.
///
/// A tangent or adjoint has the shape of its primal; its element type is f32
/// for floats of 32 bits or fewer and f64 for f64, so that casts to and from
/// half precision cost nothing and contributions are not rounded before they
/// meet.
class Differentiation {
public:
  Differentiation(OpBuilder &builder, const Activity &activity,
                  Location location)
      : builder(builder), activity(activity), location(location) {}

  OpBuilder &builder;
  const Activity &activity;

  /// The counterpart in the derived kernel of the operations and values of the
  /// primal.
  IRMapping primals;

  /// Where the operation being differentiated stands in the user's source.
  Location loc() const { return location; }

  bool isActive(Value value) const { return activity.isActive(value); }
  /// Which of some values are active.
  llvm::BitVector findActive(ValueRange values) const;

  /// Whether a derivative goes through `op`, or through memory that it writes.
  bool takesPart(Operation &op) const;

  /// The value in the derived kernel that recomputes `primal`, or may be
  /// reloaded for it.
  Value primal(Value primal) const;
  /// The same of a value that there may not be.
  Value primalOrNull(Value value) const {
    return value ? primal(value) : Value();
  }

  /// The type of the tangent or adjoint of a primal of this type.
  static Type typeFor(Type primal);

  /// A constant of that type for `primalType`.
  Value constant(Type primalType, double number);

  /// `value`, a float or tile of floats, in the element type of its adjoint.
  Value widen(Value value);

  /// Appends a copy of `op`, on the values in the derived kernel.
  Operation *clone(Operation &op);

protected:
  Location location;
};

/// Where derivatives were defined, leaves what is not differentiated again.
void keepMarkers(Operation *root);

/// Where derivatives were stopped or defined, leaves only the value; likewise
/// what only a derivative of the derivative has to know.
void dropMarkers(Operation *root);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_DIFFERENTIATION_H
