//===- Adjoint.h - What a rule sees while a kernel is reversed --*- C++ -*-===//
#ifndef AUTODIFF_RULES_ADJOINT_H
#define AUTODIFF_RULES_ADJOINT_H

#include "autodiff/Analysis/LiveLanes.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Rules/Differentiation.h"

namespace mlir::autodiff {

/// The state of reversing one kernel: the values of the forward, computed again
/// in the backward, and the adjoints so far.
class Adjoint : public Differentiation {
public:
  /// `tapes` is the first unused tape number. Numbers that must not be negative
  /// are added to `assumed`, if it is not null.
  Adjoint(OpBuilder &builder, const Activity &activity, LiveLanes &lanes,
          Location location, unsigned tapes,
          SmallVectorImpl<ScalarExpr> *assumed)
      : Differentiation(builder, activity, location), lanes(lanes),
        assumed(assumed), tapes(tapes) {}

  LiveLanes &lanes;
  SmallVectorImpl<ScalarExpr> *assumed;

  /// Whether a value is finite in lanes that are not live, given that it is
  /// finite in live ones (LiveLanes.h).
  bool isFiniteElsewhere(Value primal) const;

  /// The live lanes, given that the block being reversed runs.
  const Lanes *seen(const Lanes *lanes) const {
    return this->lanes.seenFrom(reversed, lanes);
  }

  /// `primal(value)` of a value that may be in a branch or loop that is not
  /// being reversed: it is computed again if it is not available.
  Value recomputed(Value primal);

  /// The adjoint of `value` so far; null means zero.
  Value get(Value value) const { return adjoints.lookup(value); }

  /// value̅ += contribution. Does nothing if `value` is not active
  /// (Activity.h), or the contribution is null.
  void add(Value value, Value contribution);

  /// Replaces the adjoint of `value`.
  void set(Value value, Value adjoint);

  /// Appends a copy of `block` without its terminator and without effects to
  /// the backward kernel. Values that the forward records are read back.
  void recompute(Block &block);

  /// Emits the adjoints of the operations of `block`, the last one first.
  LogicalResult reverse(Block &block);

  /// Runs `body` with an empty set of adjoints, and returns those of `values`
  /// afterwards (null for zero).
  FailureOr<SmallVector<Value>>
  scoped(ArrayRef<Value> values, llvm::function_ref<LogicalResult()> body);

  /// Active values that are defined outside of `regions` and used inside.
  SmallVector<Value> getActiveCaptures(MutableArrayRef<Region> regions) const;

  /// A number for the next tape.
  unsigned newTape() { return tapes++; }

private:
  /// Emits a pop of what `push` records, instead of a copy of the recorded
  /// operation.
  void popInstead(PushOp push);

  llvm::DenseMap<Value, Value> adjoints;
  /// The block that is being reversed.
  Block *reversed = nullptr;
  unsigned tapes;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_RULES_ADJOINT_H
