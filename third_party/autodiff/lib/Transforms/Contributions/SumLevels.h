//===- SumLevels.h - Where programs sum what they share ---------*- C++ -*-===//
//
// Programs that differ in some digits of their ids may contribute to the same
// addresses: they *share* these digits. What they contribute is summed
//
//   in registers   one program does the work of many, one after the other;
//   in parts       each program stores a partial sum of its own, which the
//                  runtime adds up;
//   in atomics     at the addresses themselves.
//
// Which digits one program goes through (the *shape* of the kernel) is one
// choice for all arguments. In a shape, each argument has one cheapest level.
// The order of arguments decides nothing.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_CONTRIBUTIONS_SUMLEVELS_H
#define AUTODIFF_LIB_TRANSFORMS_CONTRIBUTIONS_SUMLEVELS_H

#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/ProgramDigits.h"

namespace mlir::autodiff {

/// How many elements a program moves for each element of a partial sum of its
/// own, where that is no slower than atomic additions, and how many such sums
/// there may be. Measured on an H200: `python -m arena time`, where norms of
/// blocks and the delta rule lose with less, and gates gain. See
/// docs/decisions/levels-of-sums.md.
constexpr int64_t kMovedOfPart = 64, kMostParts = 8192;

/// What a kernel contributes to one argument, at addresses that programs share.
struct SharedSum {
  unsigned argument;
  SmallVector<Contribution> ops;
  /// All addresses.
  AccessSpace space;
  /// The digits of program ids that these do not depend on.
  SmallVector<ScalarExpr> shared;
  /// Why no program can sum several programs' contributions in registers.
  Obstacle notInRegisters;

  /// How many elements a program adds at a time.
  int64_t countAdded() const;
  /// What a launch checks of sums for every combination of the shared digits.
  CheckAttr getCheck(ArrayRef<ScalarExpr> digits) const {
    return space.toSummedCheck(argument, shared,
                               findUnmentioned(digits, shared));
  }
  bool isInRegistersOf(ArrayRef<ScalarExpr> serial) const {
    return !notInRegisters && findUnmentioned(serial, shared).empty();
  }
};

/// The shapes that a kernel may have, and what they are worth.
class SumLevels {
public:
  /// What the kernel contributes to arguments outside of `atomic`. Remarks why
  /// others are no shared sums.
  SumLevels(triton::FuncOp kernel, Contributions &all,
            ArrayRef<unsigned> atomic);

  ArrayRef<SharedSum> getSums() const { return sums; }
  /// The best of the shapes: the digits that one program may go through. Empty
  /// if there is none.
  SmallVector<ScalarExpr> findShape() const;
  /// The sums that are made in registers in a shape.
  SmallVector<SharedSum, 0> getInRegisters(ArrayRef<ScalarExpr> serial) const;
  /// Why meeting in atomics costs nothing beside the rest of the work, if so.
  Obstacle findCost(ArrayRef<ScalarExpr> serial) const;
  /// Why partial sums of every program would take too much memory, if so.
  Obstacle findCostOfParts(const SharedSum &sum) const;

private:
  ReasonOr<SharedSum> examine(unsigned argument, const GradientUse &use) const;
  Obstacle findOrder(const GradientUse &use) const;
  int64_t countInRegisters(ArrayRef<ScalarExpr> serial) const;
  triton::FuncOp findOther(unsigned argument) const;

  triton::FuncOp kernel;
  Contributions &all;
  ArrayRef<unsigned> atomic;
  GradientUses uses;
  SmallVector<SharedSum, 0> sums;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_CONTRIBUTIONS_SUMLEVELS_H
