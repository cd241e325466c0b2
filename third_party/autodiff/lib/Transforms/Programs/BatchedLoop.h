//===- BatchedLoop.h - All iterations of a loop at once ---------*- C++ -*-===//
//
// If iterations do not depend on each other, they can be the first axis of
// tiles:
//
//   for (i = a; i < b; i += s) sum += f(i)
//   ⇒  sum + reduce(f(a + s · [0, T)))
//
// An axis may be longer than the number of iterations. Then masks have to
// exclude positions behind the last iteration, so that these have no effect.
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
  /// A loop whose iterations may be an axis. Fails if they may not, or if a
  /// launch does not know how many there are.
  static ReasonOr<BatchedLoop> match(scf::ForOp loop);

  scf::ForOp getLoop() const { return loop; }
  /// The number of iterations.
  const ScalarExpr &getTrips() const { return trips; }
  /// The induction variable for `position` on the axis.
  ScalarExpr getIndexAt(int64_t position) const;
  /// Whether the axis must be exactly as long as there are iterations, because
  /// not all masks exclude positions behind the last one.
  bool isExact() const { return exact; }
  /// The number of elements of the largest tile that gets the axis.
  int64_t getLargestTile() const { return largest; }

  /// The results that are maxima or minima of active values. Ties share the
  /// derivative differently than in the loop.
  SmallVector<Value> getSelected() const;

  /// Replaces the loop, which has at least one iteration, by an axis of
  /// `length`. Returns the stores that were in it.
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
  /// For each carried value, what each iteration adds to it or takes the
  /// maximum or minimum with. A value that is used for more than that advances
  /// by the same amount every time.
  SmallVector<Value> combined;
  llvm::DenseSet<unsigned> advancing;
  /// The operations that combine the other carried values.
  llvm::DenseSet<Operation *> reductions;
  /// The values that differ from one iteration to another, and the operations
  /// that compute them.
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
