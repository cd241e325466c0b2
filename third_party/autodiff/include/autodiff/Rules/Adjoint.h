//===- Adjoint.h - What a rule sees while a kernel is reversed --*- C++ -*-===//
#ifndef AUTODIFF_RULES_ADJOINT_H
#define AUTODIFF_RULES_ADJOINT_H

#include "autodiff/Analysis/LiveLanes.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Differentiation.h"

namespace mlir::autodiff {

/// The state of reversing one kernel: beside the primal values, recomputed in
/// the backward, the adjoints so far.
class Adjoint : public Differentiation {
public:
  /// `tapes` is the first number that no tape has. Numbers that must not be
  /// negative are added to `assumed`, if there may be any.
  Adjoint(OpBuilder &builder, const Activity &activity, LiveLanes &lanes,
          Location location, unsigned tapes,
          SmallVectorImpl<ScalarExpr> *assumed)
      : Differentiation(builder, activity, location), lanes(lanes),
        assumed(assumed), tapes(tapes) {}

  LiveLanes &lanes;
  SmallVectorImpl<ScalarExpr> *assumed;

  /// Whether a value is finite in all lanes that are not live, if it is in
  /// those that are.
  bool isFiniteElsewhere(Value primal) const;

  /// Live lanes where the block that is being reversed runs.
  const Lanes *seen(const Lanes *lanes) const {
    return this->lanes.seenFrom(reversed, lanes);
  }

  /// `primal(value)` of one that may stand in a branch or loop that is not
  /// being reversed: computed anew, if it is not there.
  Value recomputed(Value primal);

  /// The adjoint of `value` so far; null means zero.
  Value get(Value value) const { return adjoints.lookup(value); }

  /// value̅ += contribution. Ignored if `value` is not active; null adds
  /// nothing.
  void add(Value value, Value contribution);

  /// Replaces the adjoint of `value`.
  void set(Value value, Value adjoint);

  /// Appends the recomputation of `block` (without its terminator and without
  /// effects) to the backward kernel; what the primal records is read back.
  void recompute(Block &block);

  /// Reverses the operations of `block` in the order opposite to theirs.
  LogicalResult reverse(Block &block);

  /// Runs `body` with an empty set of adjoints and returns what it leaves for
  /// `values` (null for those that got none).
  FailureOr<SmallVector<Value>>
  scoped(ArrayRef<Value> values, llvm::function_ref<LogicalResult()> body);

  /// Active values defined outside of `regions` and used inside.
  SmallVector<Value> getActiveCaptures(MutableArrayRef<Region> regions) const;

  /// A number for the next tape.
  unsigned newTape() { return tapes++; }

private:
  /// Reads back what `push` records, in place of its recomputation.
  void popInstead(PushOp push);

  llvm::DenseMap<Value, Value> adjoints;
  /// The block that is being reversed.
  Block *reversed = nullptr;
  unsigned tapes;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_ADJOINT_H
