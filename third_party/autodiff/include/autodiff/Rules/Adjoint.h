//===- Adjoint.h - What a rule sees while a kernel is reversed --*- C++ -*-===//
#ifndef AUTODIFF_RULES_ADJOINT_H
#define AUTODIFF_RULES_ADJOINT_H

#include "autodiff/Analysis/LiveLanes.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::autodiff {

/// The state of reversing one kernel: a builder positioned in the backward
/// kernel, the primal values recomputed there, and the adjoints so far.
///
/// An adjoint has the shape of its primal; its element type is f32 for floats
/// of 32 bits or fewer and f64 for f64, so that casts to and from half
/// precision cost nothing and contributions are not rounded before they meet.
class Adjoint {
public:
  /// `tapes` is the first number that no tape has. Numbers that must not be
  /// negative are added to `assumed`, if there may be any.
  Adjoint(OpBuilder &builder, const Activity &activity, LiveLanes &lanes,
          Location location, unsigned tapes,
          SmallVectorImpl<ScalarExpr> *assumed)
      : builder(builder), activity(activity), lanes(lanes), assumed(assumed),
        location(location), tapes(tapes) {}

  OpBuilder &builder;
  const Activity &activity;
  LiveLanes &lanes;
  SmallVectorImpl<ScalarExpr> *assumed;

  /// Where the operation being reversed stands in the user's source.
  Location loc() const { return location; }

  bool isActive(Value value) const { return activity.isActive(value); }
  /// Which of some values are active.
  llvm::BitVector findActive(ValueRange values) const;

  /// Whether a value is finite in all lanes that are not live, if it is in
  /// those that are.
  bool isFiniteElsewhere(Value primal) const;

  /// Live lanes where the block that is being reversed runs.
  const Lanes *seen(const Lanes *lanes) const {
    return this->lanes.seenFrom(reversed, lanes);
  }

  /// The value in the backward kernel that recomputes `primal`, or may be
  /// reloaded for it.
  Value primal(Value primal) const;

  /// The same for a value that may stand in a branch or loop that is not being
  /// reversed: computed anew, if it is not there.
  Value recomputed(Value primal);

  /// The adjoint of `value` so far; null means zero.
  Value get(Value value) const { return adjoints.lookup(value); }

  /// value̅ += contribution. Ignored if `value` is not active; null adds
  /// nothing.
  void add(Value value, Value contribution);

  /// Replaces the adjoint of `value`.
  void set(Value value, Value adjoint) { adjoints[value] = adjoint; }

  /// The adjoint's type for a primal of this type.
  static Type typeFor(Type primal);

  /// A constant of the adjoint's type for `primalType`.
  Value constant(Type primalType, double number);

  /// `value`, a float or tile of floats, in the adjoint's element type.
  Value widen(Value value);

  /// Appends the recomputation of `block` (without its terminator and without
  /// effects) to the backward kernel; what the primal records is read back.
  void recompute(Block &block);

  /// Appends a copy of `op`, on the values in the backward kernel.
  void clone(Operation &op);

  /// Reverses the operations of `block` in the order opposite to theirs.
  LogicalResult reverse(Block &block);

  /// Runs `body` with an empty set of adjoints and returns what it leaves for
  /// `values` (null for those that got none).
  FailureOr<SmallVector<Value>>
  scoped(ArrayRef<Value> values, llvm::function_ref<LogicalResult()> body);

  /// Active values defined outside of `regions` and used inside.
  SmallVector<Value> getActiveCaptures(MutableArrayRef<Region> regions) const;

  /// The recomputed counterpart of the operations and values of the primal.
  IRMapping primals;

  /// A number for the next tape.
  unsigned newTape() { return tapes++; }

private:
  /// Reads back what `push` records, in place of its recomputation.
  void popInstead(PushOp push);

  llvm::DenseMap<Value, Value> adjoints;
  Location location;
  /// The block that is being reversed.
  Block *reversed = nullptr;
  unsigned tapes;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_ADJOINT_H
