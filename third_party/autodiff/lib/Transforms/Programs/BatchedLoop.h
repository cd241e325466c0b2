//===- BatchedLoop.h - All iterations of a loop at once ---------*- C++ -*-===//
//
// Iterations that need nothing of one another are an axis of tiles, the first:
//
//   for (i = a; i < b; i += s) sum += f(i)   ⇒   sum + reduce(f(a + s · [0,
//   T)))
//
// An axis as long as there are iterations has nothing else in it. On a longer
// one, masks have to leave out what lies behind the last iteration, and nothing
// may come of it.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_PROGRAMS_BATCHEDLOOP_H
#define AUTODIFF_LIB_TRANSFORMS_PROGRAMS_BATCHEDLOOP_H

#include "autodiff/Analysis/Reason.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {

class BatchedLoop {
public:
  /// A loop whose iterations may be an axis; none if they may not, or if a
  /// launch does not tell how many there are.
  static ReasonOr<BatchedLoop> match(scf::ForOp loop);

  scf::ForOp getLoop() const { return loop; }
  /// How many iterations there are.
  const ScalarExpr &getTrips() const { return trips; }
  /// What the induction variable is on the axis at `position`.
  ScalarExpr getIndexAt(int64_t position) const;
  /// Whether the axis must be as long as there are iterations: not all masks
  /// leave out what lies behind the last one.
  bool isExact() const { return exact; }
  /// The elements of the largest tile that gets the axis.
  int64_t getLargestTile() const { return largest; }

  /// The results that are maxima or minima of numbers with a derivative: what
  /// attains them by a tie gets another share of it than in the loop.
  SmallVector<Value> getSelected() const;

  /// Puts the iterations, of which there are some, on an axis of `length`, and
  /// removes the loop. Returns the stores that were in it.
  SmallVector<triton::StoreOp> batch(int64_t length);

private:
  BatchedLoop(scf::ForOp loop, ScalarExpr lower, ScalarExpr step,
              ScalarExpr trips)
      : loop(loop), lower(lower), step(step), trips(trips) {}

  Obstacle classifyCarried();
  Obstacle findVarying();
  bool hasPlainRegions(Operation *op) const;
  bool isLeftOut(Operation *access) const;
  bool varies(Value value) const { return varying.contains(value); }

  Value batched(OpBuilder &b, Value value);
  Value batchedFor(OpBuilder &b, Operation *op, Value operand);
  Type batchedType(Type type) const;
  void note(Operation *copy);
  void emit(OpBuilder &b, Operation *op);
  Value emitReduction(OpBuilder &b, unsigned number);
  Value advanceOnAxis(OpBuilder &b, Value start, Value step);
  Value advanceToEnd(OpBuilder &b, unsigned number);

  scf::ForOp loop;
  ScalarExpr lower, step, trips;
  bool exact = false;
  int64_t largest = 1;
  /// By the number of a carried value, what each iteration adds to it, or takes
  /// the maximum or minimum of it and; if it is used for more than that, it
  /// advances by as much every time.
  SmallVector<Value> combined;
  llvm::DenseSet<unsigned> advancing;
  /// What combines the others.
  llvm::DenseSet<Operation *> reductions;
  /// What differs from one iteration to another, and what computes it.
  llvm::DenseSet<Value> varying;
  llvm::SetVector<Operation *> onAxisOps;

  int64_t length = 0;
  Value isReal; // null: all iterations are
  SmallVector<triton::StoreOp> stores;
  IRMapping invariant;
  llvm::DenseMap<Value, Value> onAxis;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_PROGRAMS_BATCHEDLOOP_H
