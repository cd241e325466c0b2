//===- ParallelLoop.h - Loops whose iterations stand alone ------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_PARALLELLOOP_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_PARALLELLOOP_H

#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/Regrid.h"

namespace mlir::autodiff {

/// Why iterations of a loop of a backward have to run in one order, if they do;
/// see autodiff-order-loops.
Obstacle findOrder(scf::ForOp loop);

/// A parallel loop of a backward, whose iterations are numbered alike in all
/// programs: `index = base + number · step` is the primal's induction variable.
class ParallelLoop {
public:
  /// None if `loop`, which reverses the loop `primal`, is not of this kind.
  /// The launch makes sure that no value of `digits` is negative.
  static ReasonOr<ParallelLoop> of(scf::ForOp loop, scf::ForOp primal,
                                   ArrayRef<ScalarExpr> digits);

  scf::ForOp getLoop() const { return loop; }
  scf::ForOp getPrimal() const { return primal; }
  /// The numbering of `count` iterations.
  AccessSpace::Renumbering numberAlike(ExprAttr count) const {
    return {primal, startVaries, step, count};
  }
  /// The exact space of an access in the loop, one that moves if need be; none
  /// if there is none. The numbers of iterations are below `count`.
  ReasonOr<AccessSpace> findSpace(Operation *access, ExprAttr count) const;
  /// Whether programs start at different numbers; then `base` is zero.
  bool isStartVarying() const { return startVaries; }
  /// Whether `base` is the same in programs that differ in `digits` alone.
  bool hasSameBase(ArrayRef<ScalarExpr> digits) const;
  /// Whether numbers mean the same as in another loop.
  bool agreesWith(const ParallelLoop &other) const {
    return base == other.base && step == other.step;
  }
  /// Whether all programs run the same iterations as of another loop.
  bool runsLike(const ParallelLoop &other) const {
    return loop == other.loop ||
           (isUniform() && other.isUniform() && agreesWith(other) &&
            count() == other.count());
  }
  /// The numbers are below this, in every program.
  ExprAttr count() const;
  /// Whether all programs run the same iterations.
  bool isUniform() const;
  /// Whether the bounds of a program depend on `digit`.
  bool dependsOn(const ScalarExpr &digit) const;

  /// Makes the iteration of this number known to `regrid`, given the index.
  LogicalResult bind(Regrid &regrid, OpBuilder &builder, Value number,
                     Value index) const;

  /// Places (integers and pointers) that are the same for one index in all
  /// programs that differ in `digits` alone, wherever they start.
  SmallVector<Value> findSharedPlaces(ArrayRef<ScalarExpr> digits) const;

  /// The values of `digit`, from the first to before the second, with which a
  /// program runs the iteration of this index. `extent` is the number of all
  /// values; `atZero` computes values of the primal with `digit` zero. Fails if
  /// the bounds are not affine in it.
  FailureOr<std::pair<Value, Value>> invert(OpBuilder &builder,
                                            const ScalarExpr &digit,
                                            Value extent, Value index,
                                            Regrid &atZero) const;

private:
  ParallelLoop(scf::ForOp loop, scf::ForOp primal, ScalarExpr base,
               ScalarExpr step, ScalarExpr upper, bool startVaries)
      : loop(loop), primal(primal), base(base), step(step), upper(upper),
        startVaries(startVaries) {}

  scf::ForOp loop, primal;
  ScalarExpr base, step, upper;
  bool startVaries;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_PARALLELLOOP_H
