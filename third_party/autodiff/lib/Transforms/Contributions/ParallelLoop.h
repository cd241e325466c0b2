//===- ParallelLoop.h - Loops whose iterations stand alone ------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_PARALLELLOOP_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_PARALLELLOOP_H

#include "autodiff/Analysis/AccessSpace.h"
#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/Kernels.h"
#include "autodiff/Builders/Regrid.h"

namespace mlir::autodiff {

/// Why the iterations of a loop of a backward have to run in one order; none if
/// they do not. See autodiff-order-loops.
Obstacle findOrder(scf::ForOp loop);

/// A parallel loop of a backward: its iterations may run in any order, and have
/// the same numbers in all programs. `index = base + number · step` is the
/// induction variable of the forward's loop.
class ParallelLoop {
public:
  /// Fails if `loop`, which reverses the forward's loop `primal`, is not of
  /// this kind. The launch checks that no value of `digits` is negative.
  static ReasonOr<ParallelLoop> of(scf::ForOp loop, scf::ForOp primal,
                                   ArrayRef<ScalarExpr> digits);

  scf::ForOp getLoop() const { return loop; }
  scf::ForOp getPrimal() const { return primal; }
  /// The numbering of `count` iterations, for access spaces (AccessSpace.h).
  AccessSpace::Renumbering numberAlike(ExprAttr count) const {
    return {primal, startVaries, step, count};
  }
  /// Whether iterations start at different numbers in different programs; then
  /// `base` is zero.
  bool isStartVarying() const { return startVaries; }
  /// Whether `base` is the same in programs that only differ in `digits`.
  bool hasSameBase(ArrayRef<ScalarExpr> digits) const;
  /// Whether equal numbers mean equal indices in another loop.
  bool agreesWith(const ParallelLoop &other) const {
    return base == other.base && step == other.step;
  }
  /// Whether every program runs the same iterations as of another loop.
  bool runsLike(const ParallelLoop &other) const {
    return loop == other.loop ||
           (isUniform() && other.isUniform() && agreesWith(other) &&
            count() == other.count());
  }
  /// An upper bound of all numbers, in every program.
  ExprAttr count() const;
  /// Whether all programs run the same iterations.
  bool isUniform() const;
  /// Whether a program's bounds depend on `digit`.
  bool dependsOn(const ScalarExpr &digit) const;

  /// Binds the iteration with this number, and its index, in `regrid`.
  LogicalResult bind(Regrid &regrid, OpBuilder &builder, Value number,
                     Value index) const;

  /// Integers and pointers that have the same value for the same index in all
  /// programs that only differ in `digits`, wherever these start.
  SmallVector<Value> findSharedPlaces(ArrayRef<ScalarExpr> digits) const;

  /// The values of `digit` for which a program runs the iteration with this
  /// index: from the first result to before the second. `extent` is the number
  /// of all values; `atZero` computes values of the forward with `digit` zero.
  /// Fails if the bounds are not affine in the digit.
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

/// Parallel loops in one another. Those on which an address depends are
/// *owned*: a number stands for one iteration of each, the innermost fastest.
/// The others are *summed*: at each number, all of their iterations go to the
/// same addresses. At most one loop, an owned one, may have other iterations in
/// other programs: it *varies*.
class ParallelNest {
public:
  /// Fails if the loops around a contribution are not of this kind. The launch
  /// checks that no value of `digits` is negative.
  static ReasonOr<ParallelNest> of(Contribution op,
                                   ArrayRef<ScalarExpr> digits);

  ArrayRef<ParallelLoop> getOwned() const { return owned; }
  ArrayRef<ParallelLoop> getSummed() const { return summed; }
  /// The place among the owned loops of the one that varies, if there is one.
  std::optional<unsigned> getVarying() const { return varying; }
  bool isSingle() const { return owned.size() == 1 && summed.empty(); }
  /// The loop that is not inside of another one; the one that a contribution is
  /// in.
  scf::ForOp getOutermost() const { return outermost; }
  scf::ForOp getInnermost() const { return innermost; }

  /// The exact space of a contribution in the nest, which may move; fails if
  /// there is none. Numbers are below `count`.
  ReasonOr<AccessSpace> findSpace(const Contribution &op, ExprAttr count) const;
  /// An upper bound of all numbers, in every program.
  ExprAttr count() const;
  bool isUniform() const { return !varying; }
  bool hasSameBase(ArrayRef<ScalarExpr> digits) const;
  bool dependsOn(const ScalarExpr &digit) const;
  /// Whether equal numbers mean equal indices in another nest.
  bool agreesWith(const ParallelNest &other) const;
  /// Whether every program runs the same iterations as of another nest.
  bool runsLike(const ParallelNest &other) const;

private:
  SmallVector<ParallelLoop, 1> owned, summed;
  std::optional<unsigned> varying;
  scf::ForOp outermost, innermost;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_PARALLELLOOP_H
