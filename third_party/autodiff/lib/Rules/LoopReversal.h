//===- LoopReversal.h - What for and while loops have in common -*- C++ -*-===//
//
// The reversed loop runs the iterations backwards. Each iteration recomputes
// its primal values from what the loop carried at its start, then reverses the
// body. Carried values are found again by their class: affine ones (counters,
// pointers) from the iteration's number; states that the loop has stored are
// read where it did (MarkStates.cpp); the others are popped from a tape that
// the recomputed primal loop pushes. A tape that no adjoint reads disappears
// again (Tape.cpp), which is what happens to accumulators.
//
// With checkpoints, of n iterations only every C-th is recorded, C about √n.
// The reversed loop takes them C at a time: it starts a recording loop from a
// checkpoint, and reverses these iterations. Both tapes then hold about √n.
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

/// Reverses a loop whose work is all in one block: a for loop, or a while loop
/// in the form that autodiff-normalize gives it.
class LoopReversal {
public:
  /// `inits` and `nexts` belong to `carried`, arguments of `body` at the start
  /// of an iteration, and to the results of `op`.
  LoopReversal(LoopLikeOpInterface op, Block *body, ValueRange carried,
               ValueRange inits, ValueRange nexts, Adjoint &adjoint)
      : op(op), body(body), carried(carried), inits(inits), nexts(nexts),
        adjoint(adjoint), b(adjoint.builder),
        loc(withoutVariable(adjoint.loc())) {}
  virtual ~LoopReversal() = default;

  /// `count` is the number of iterations, in the backward.
  LogicalResult run(Value count);

protected:
  /// Binds what else an iteration knows from its number.
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

  // Where the carried values are that can be read.
  llvm::MapVector<unsigned, StoredState> states;
  // The other carried values that are not affine; the carried values and
  // captures that are active.
  SmallVector<unsigned> general, active;
  SmallVector<Value> captures;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_RULES_LOOPREVERSAL_H
