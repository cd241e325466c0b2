//===- LiveLanes.h - Lanes that outputs depend on ---------------*- C++ -*-===//
//
// Masks, selections and branches leave lanes of a tile out. No output depends
// on what these hold, so they may hold anything, NaN included. All other lanes
// are *live*.
//
// A cotangent is zero in lanes that are not live. But it is multiplied by
// values of the primal, and 0 · NaN is not zero: whoever multiplies asks here
// where a value may be used.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_LIVELANES_H
#define AUTODIFF_ANALYSIS_LIVELANES_H

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/FinalStores.h"
#include "llvm/ADT/FoldingSet.h"
#include "llvm/Support/Allocator.h"

namespace mlir::autodiff {

/// Lanes of a value, as a condition over those that the primal computes. Equal
/// ones are one object.
struct Lanes : llvm::FoldingSetNode {
  enum class Kind {
    None,
    All,
    Some,    ///< the part's, in an iteration that is not said
    Unknown, ///< some, but nobody knows which
    Where,   ///< those where a condition of the primal holds
    Unless,  ///< those where it does not
    Runs,    ///< all if a loop has an iteration
    Again,   ///< all if a loop has one after the current one
    And,     ///< those that are in all parts
    Or,      ///< those that are in one of the parts
    Through, ///< those of an operand that lead to the parts, one for each
             ///< result of its user
  };

  Kind kind;
  Value condition;         ///< of Where and Unless: a bool or a tile of these
  ArrayRef<unsigned> axes; ///< on which its axes longer than one lie
  Operation *loop;         ///< of Runs and Again
  OpOperand *use;          ///< of Through
  ArrayRef<const Lanes *> parts;
  unsigned number; ///< in the order in which they were made
  unsigned size;   ///< with all parts of parts

  bool isNone() const { return kind == Kind::None; }
  bool isAll() const { return kind == Kind::All; }
  /// Whether this is a superset of what is meant.
  bool isUnsure() const { return kind == Kind::Some || kind == Kind::Unknown; }
  /// Whether it is one condition, the same along all axes but its own.
  bool isCondition() const { return condition || loop; }
  void Profile(llvm::FoldingSetNodeID &id) const;
};

/// Conditions on lanes, uniqued and simplified.
class LaneAlgebra {
public:
  const Lanes *none() { return get(Lanes::Kind::None); }
  const Lanes *all() { return get(Lanes::Kind::All); }
  const Lanes *unknown() { return get(Lanes::Kind::Unknown); }
  /// These lanes, in some iteration.
  const Lanes *some(const Lanes *of);
  /// Those where `condition`, a bool or a tile of these, holds, or not.
  const Lanes *where(Value condition, bool holds = true);
  /// All if `loop` has an iteration.
  const Lanes *ifRuns(scf::ForOp loop);
  /// All if `loop` has an iteration after the one that asks.
  const Lanes *ifRunsAgain(scf::ForOp loop);
  const Lanes *both(const Lanes *a, const Lanes *b);
  const Lanes *either(const Lanes *a, const Lanes *b);
  /// What `lanes` ask for besides `known`.
  const Lanes *without(const Lanes *lanes, const Lanes *known);
  /// The lanes of an operand that lead to `results`, those of its user's.
  const Lanes *through(OpOperand &use, ArrayRef<const Lanes *> results);
  /// `lanes` in terms of what is known in `block`: other conditions hold in
  /// some iteration.
  const Lanes *knownIn(const Lanes *lanes, Block *block);
  /// `lanes`, with some conditions taken for true.
  const Lanes *given(const Lanes *lanes,
                     llvm::function_ref<bool(const Lanes *)> isTrue);

private:
  /// One that has what is given, of equal ones the first.
  const Lanes *get(Lanes lanes);
  const Lanes *get(Lanes::Kind kind, ArrayRef<const Lanes *> parts = {});
  const Lanes *get(Lanes::Kind kind, Operation *loop);
  const Lanes *where(Value condition, bool holds, ArrayRef<unsigned> axes);
  const Lanes *throughOne(OpOperand &use, const Lanes *result);
  const Lanes *makeThrough(OpOperand &use, const Lanes *result);

  llvm::BumpPtrAllocator allocator;
  llvm::FoldingSet<Lanes> nodes;
  llvm::DenseMap<std::pair<OpOperand *, const Lanes *>, const Lanes *> carried;
};

class CustomVjpOp;

/// Whether the user's function does the same for each lane by itself.
bool isLanewise(CustomVjpOp custom);

class LiveLanes {
public:
  /// By what an output depends on a value: what a gradient comes back by, or
  /// also what is decided by it, as a selection, an address or a branch.
  enum class Effects { Differentiable, All };

  /// Analyses a kernel, whose outputs are what it stores to differentiated
  /// tensors, to those of `repeated` more than once.
  LiveLanes(triton::FuncOp kernel, const Activity &activity,
            ArrayRef<unsigned> repeated,
            Effects effects = Effects::Differentiable);
  /// Analyses a function with these `outputs`.
  LiveLanes(triton::FuncOp function, const Activity &activity,
            ValueRange outputs);

  /// The lanes of `value` that are live, or a superset that says so.
  const Lanes *of(Value value);

  /// Those that are live because of what the user of an operand makes of it.
  const Lanes *through(OpOperand &use);

  /// `lanes` where a block of the primal runs, and so do all loops around it.
  const Lanes *seenFrom(Block *block, const Lanes *lanes);

  /// `lanes` if all loops run, and every iteration is followed by another one.
  const Lanes *ifAllRun(const Lanes *lanes);

  /// What `lanes` ask for besides a mask on the same tile (null: none).
  const Lanes *without(const Lanes *lanes, Value mask);

private:
  LiveLanes(triton::FuncOp kernel, const Activity &activity, FinalStores final,
            ValueRange outputs, Effects effects);
  void solve(triton::FuncOp kernel, ValueRange outputs);
  bool findOverwritten(triton::FuncOp kernel);
  void visit(Operation *op);
  void visitLoop(scf::ForOp loop);
  void visitLoop(scf::WhileOp loop);
  bool counts(Value value) const;
  const Lanes *ifDecisionsCount(const Lanes *lanes);
  const Lanes *ifDecisionsCount() { return ifDecisionsCount(algebra.all()); }
  void add(Value value, const Lanes *lanes, Block *from);
  void addCaptured(Operation *op);
  const Lanes *ofStored(Operation *write, Value mask);
  const Lanes *ofResult(Value result, Value argument);
  const Lanes *leave(const Lanes *lanes, Block *from, Block *to);
  const Lanes *handedOn(Value argument);

  const Activity &activity;
  Effects effects;
  FinalStores final;
  LaneAlgebra algebra;
  llvm::DenseMap<Value, const Lanes *> live;
  /// What loops carry of which only the last one leads to a result.
  llvm::DenseSet<Value> overwritten;
  bool changed = false;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_LIVELANES_H
