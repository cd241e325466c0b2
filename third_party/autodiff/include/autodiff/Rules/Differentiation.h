//===- Differentiation.h - What a rule sees, either way ---------*- C++ -*-===//
#ifndef AUTODIFF_RULES_DIFFERENTIATION_H
#define AUTODIFF_RULES_DIFFERENTIATION_H

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::autodiff {

/// The state of deriving one kernel from another: a builder in the derived
/// kernel, and the values of the original, the *primal*, there.
///
/// A tangent or adjoint has the shape of its primal value. Its element type is
/// f32 for floats of 32 bits or fewer, and f64 for f64. So casts to and from
/// half precision cost nothing, and contributions are not rounded before they
/// are added.
class Differentiation {
public:
  Differentiation(OpBuilder &builder, const Activity &activity,
                  Location location)
      : builder(builder), activity(activity), location(location) {}

  OpBuilder &builder;
  const Activity &activity;

  /// Maps operations and values of the primal to those of the derived kernel.
  IRMapping primals;

  /// The location of the operation that is being differentiated.
  Location loc() const { return location; }

  bool isActive(Value value) const { return activity.isActive(value); }
  /// Which of some values are active (Activity.h).
  llvm::BitVector findActive(ValueRange values) const;

  /// Whether a derivative flows through `op`, or through memory that it writes.
  bool takesPart(Operation &op) const;

  /// The value of the derived kernel for the primal's; it may be recomputed or
  /// loaded.
  Value primal(Value primal) const;
  /// The same; null for null.
  Value primalOrNull(Value value) const {
    return value ? primal(value) : Value();
  }

  /// The type of the tangent or adjoint of a primal of this type.
  static Type typeFor(Type primal);

  /// A constant of the tangent's type for `primalType`.
  Value constant(Type primalType, double number);

  /// `value`, a float or tile of floats, in the element type of its adjoint.
  Value widen(Value value);

  /// Appends a copy of `op`, with operands of the derived kernel.
  Operation *clone(Operation &op);

protected:
  Location location;
};

/// The residuals of a value. A constant, which thousands may use, has none.
llvm::SmallVector<ResidualOp, 1> findResiduals(Value value);

/// Keeps `autodiff.once` where users define derivatives: values that must not
/// be differentiated again, and perhaps the inputs that they depend on.
void keepMarkers(Operation *root, bool withInputs = false);

/// Replaces operations that stop or define derivatives by their values, and
/// removes what only a second derivative needs.
void dropMarkers(Operation *root);

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_DIFFERENTIATION_H
