//===- LiveLanes.h - Lanes that outputs depend on ---------------*- C++ -*-===//
//
// Masks, selections and branches leave lanes of a tile out. No output depends
// on the values there, so they may be anything, NaN included. All other lanes
// are *live*.
//
// A cotangent is zero in lanes that are not live. But the chain rule multiplies
// it by values of the forward, and 0 · NaN is not zero. Rules that multiply ask
// here in which lanes a value may be used.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_LIVELANES_H
#define AUTODIFF_ANALYSIS_LIVELANES_H

#include "autodiff/Analysis/Activity.h"
#include "autodiff/Analysis/FinalStores.h"
#include "llvm/ADT/FoldingSet.h"
#include "llvm/Support/Allocator.h"

namespace mlir::autodiff {

/// A set of lanes of a value, as a condition. Equal sets are one object.
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
  /// Whether this may be a superset of the set that was asked for.
  bool isUnsure() const { return kind == Kind::Some || kind == Kind::Unknown; }
  /// Whether it is a single condition, the same along all axes but its own.
  bool isCondition() const { return condition || loop; }
  void Profile(llvm::FoldingSetNodeID &id) const;
};

/// Conditions on lanes, uniqued and simplified.
class LaneAlgebra {
public:
  const Lanes *none() { return get(Lanes::Kind::None); }
  const Lanes *all() { return get(Lanes::Kind::All); }
  const Lanes *unknown() { return get(Lanes::Kind::Unknown); }
  /// The lanes that are in `of` in some iteration.
  const Lanes *some(const Lanes *of);
  /// The lanes where `condition`, a bool or a tile of bools, is `holds`.
  const Lanes *where(Value condition, bool holds = true);
  /// All lanes if `loop` has an iteration, none if not.
  const Lanes *ifRuns(scf::ForOp loop);
  /// All lanes if the current iteration of `loop` is not its last, else none.
  const Lanes *ifRunsAgain(scf::ForOp loop);
  const Lanes *both(const Lanes *a, const Lanes *b);
  const Lanes *either(const Lanes *a, const Lanes *b);
  /// The conditions of `lanes` that `known` does not imply.
  const Lanes *without(const Lanes *lanes, const Lanes *known);
  /// The lanes of an operand that the live lanes of its user's `results` depend
  /// on.
  const Lanes *through(OpOperand &use, ArrayRef<const Lanes *> results);
  /// Expresses `lanes` by conditions that are known in `block`. For another
  /// condition, it only says that it holds in some iteration.
  const Lanes *knownIn(const Lanes *lanes, Block *block);
  /// `lanes`, with the conditions for which `isTrue` holds taken as true.
  const Lanes *given(const Lanes *lanes,
                     llvm::function_ref<bool(const Lanes *)> isTrue);

private:
  /// The unique object for a set of lanes.
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

/// Whether a user-defined function computes each lane from the same lane.
bool isLanewise(CustomVjpOp custom);

class LiveLanes {
public:
  /// Which dependences count: only those that gradients flow through, or all,
  /// selections, addresses and branches included.
  enum class Effects { Differentiable, All };

  /// Analyses a kernel. Its outputs are what it stores to tensors with a
  /// cotangent; to those of `repeated`, it stores more than once.
  LiveLanes(triton::FuncOp kernel, const Activity &activity,
            ArrayRef<unsigned> repeated,
            Effects effects = Effects::Differentiable);
  /// Analyses a function with these `outputs`. Each is live where its mask
  /// holds, an argument of the function; null is everywhere.
  LiveLanes(triton::FuncOp function, const Activity &activity,
            ValueRange outputs, ArrayRef<Value> masks);

  /// The live lanes of `value`, or a superset (see `isUnsure`).
  const Lanes *of(Value value);

  /// The lanes that are live because of one use.
  const Lanes *through(OpOperand &use);

  /// `lanes`, given that a block of the forward runs, and all loops around it.
  const Lanes *seenFrom(Block *block, const Lanes *lanes);

  /// `lanes`, assuming that all loops run, and that another iteration follows.
  const Lanes *ifAllRun(const Lanes *lanes);

  /// The conditions of `lanes` that a mask of the same tile (null: none) does
  /// not imply.
  const Lanes *without(const Lanes *lanes, Value mask);

private:
  LiveLanes(triton::FuncOp kernel, const Activity &activity, FinalStores final,
            ValueRange outputs, ArrayRef<Value> masks, Effects effects);
  void solve(triton::FuncOp kernel, ValueRange outputs, ArrayRef<Value> masks);
  bool findOverwritten(triton::FuncOp kernel);
  void visit(Operation *op);
  void visitLoop(scf::ForOp loop);
  void visitLoop(scf::WhileOp loop);
  bool counts(Value value) const;
  bool counts(OpOperand &use, Value result) const;
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
  /// Carried values of loops of which only the last iteration's leads to a
  /// result.
  llvm::DenseSet<Value> overwritten;
  bool changed = false;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_LIVELANES_H
