//===- LoopReversal.h - What for and while loops have in common -*- C++ -*-===//
//
// Reverses a loop: the new loop runs the iterations backwards. Each iteration
// computes the forward's values again from the carried values at its start,
// then reverses the body. Carried values at the start are found in one of three
// ways. Affine ones (counters, pointers) are computed from the iteration's
// number. Those that the loop has stored are loaded from there
// (MarkStates.cpp). The others are popped from a tape, a buffer that the
// recomputed forward loop pushes to. Tapes that no adjoint reads are removed
// later (PlaceTapes.cpp), such as those of accumulators.
//
// With checkpoints, only every C-th of n iterations is recorded, where C is
// about √n. The reversed loop handles C iterations at a time: it runs them
// again from a checkpoint and records them, then reverses them. Both tapes then
// have about √n entries.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_RULES_LOOPREVERSAL_H
#define AUTODIFF_LIB_RULES_LOOPREVERSAL_H

#include "autodiff/Analysis/StoredStates.h"
#include "autodiff/Rules/Adjoint.h"
#include "autodiff/Support/Position.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::autodiff {

/// Reverses a loop whose body is one block: a for loop, or a while loop in the
/// form that autodiff-normalize gives it.
class LoopReversal {
public:
  /// `carried` are arguments of `body`, the carried values at the start of an
  /// iteration; `inits` are their initial values, and `nexts` those that become
  /// the results of `op`.
  LoopReversal(LoopLikeOpInterface op, Block *body, ValueRange carried,
               ValueRange inits, ValueRange nexts, Adjoint &adjoint)
      : op(op), body(body), carried(carried), inits(inits), nexts(nexts),
        adjoint(adjoint), b(adjoint.builder),
        loc(withoutVariable(adjoint.loc())) {}
  virtual ~LoopReversal() = default;

  /// `count` is the number of iterations, as a value of the backward.
  LogicalResult run(Value count);

protected:
  /// Binds other values that depend on an iteration's number.
  virtual void bindInduction(Value iteration) {}

  Value integer(Type type, int64_t value);

  LoopLikeOpInterface op;
  Block *body;
  SmallVector<Value> carried, inits, nexts;
  Adjoint &adjoint;
  OpBuilder &b;
  Location loc;

private:
  Value affineValue(unsigned index, Value iteration);
  Value scaled(Value increment, Value iteration, bool wide);
  void classify();
  void recordPrimal(Value interval, ArrayRef<unsigned> tapes, ExprAttr entries);
  bool addState(unsigned index);
  void bindPlace(Value iteration);
  Value readState(unsigned index, Value iteration);
  void bindIteration(Value iteration, ValueRange general);
  SmallVector<Value> pop(Value entry, ArrayRef<unsigned> tapes);
  SmallVector<unsigned> newTapes();
  SmallVector<unsigned> recordChunk(Value start, Value length,
                                    ValueRange general, ExprAttr entries);
  FailureOr<SmallVector<Value>> reverseRange(Value start, Value length,
                                             ArrayRef<unsigned> tapes,
                                             ValueRange adjoints);
  FailureOr<SmallVector<Value>> reverseIteration(ValueRange adjoints);
  using Body = llvm::function_ref<FailureOr<SmallVector<Value>>(
      Value iteration, ValueRange adjoints)>;
  FailureOr<SmallVector<Value>> loopBackwards(Value count, ValueRange adjoints,
                                              Body reverse);

  // Carried values that can be loaded, and from where.
  llvm::MapVector<unsigned, StoredState> states;
  // The carried values that are neither affine nor loaded; the carried values
  // and captures that are active (Activity.h).
  SmallVector<unsigned> general, active;
  SmallVector<Value> captures;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_RULES_LOOPREVERSAL_H
