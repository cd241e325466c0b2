//===- InterchangedKernel.h - Iterations as programs ------------*- C++ -*-===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_INTERCHANGEDKERNEL_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_INTERCHANGEDKERNEL_H

#include "Handover.h"
#include "ParallelLoop.h"
#include "autodiff/Analysis/Contributions.h"
#include "autodiff/Analysis/ProgramDigits.h"

namespace mlir::autodiff {

/// A contribution of an iteration to the gradient of one argument.
struct LoopAccumulate {
  Contribution op;
  ParallelLoop loop;
};

/// An argument whose gradient an interchanged kernel can store.
struct Candidate {
  unsigned argument;
  /// The mask of the first contribution includes the addresses of the others,
  /// given `limits`.
  SmallVector<LoopAccumulate> contributions;
  SmallVector<LimitAttr, 0> limits;
  /// Numbers of iterations are below this.
  ExprAttr count;
  /// The digits of program ids that the address does not depend on.
  SmallVector<ScalarExpr> summed;
};

/// Whether the contributions to an argument contain matrix products.
bool addsProducts(const Candidate &candidate);

/// Builds the kernel whose programs are iterations of the old kernel's loops.
class InterchangedKernel {
public:
  InterchangedKernel(triton::FuncOp backward, ArrayRef<ScalarExpr> digits,
                     ArrayRef<Candidate> group,
                     ArrayRef<LoopAccumulate> followers, unsigned number);

  /// Uses values that are handed over. Null if something in the loops cannot be
  /// computed that way.
  triton::FuncOp build(const Handover &handover);
  /// Why `build` has returned null.
  const Reason &why() const { return reason; }

private:
  void collectLoops();
  LogicalResult runLoop(const ParallelLoop &loop);
  LogicalResult bindShared(const ParallelLoop &loop, OpBuilder &once,
                           Value index, Regrid &regrid);
  LogicalResult runPrograms(const ParallelLoop &loop, OpBuilder &b, Value index,
                            Value from, Value to, ArrayRef<unsigned> adding);
  LogicalResult runFollowers(const ParallelLoop &loop, OpBuilder &b,
                             Regrid &regrid, Value index);
  LogicalResult store(const Candidate &candidate, Value sum);
  bool differs(ArrayRef<ScalarExpr> staying) const;
  void bindAllZero(Regrid &regrid) const;
  Value indexOf(OpBuilder &b, Regrid &regrid, const ParallelLoop &loop) const;
  bool isSplit() const;
  void splitPrograms(ArrayRef<ScalarExpr> staying);
  SmallVector<unsigned> candidatesOf(const ParallelLoop &loop) const;
  /// Notes a value that a program of the kernel cannot compute.
  LogicalResult refuse(const char *what, const Reason &why);

  triton::FuncOp backward, kernel;
  ArrayRef<ScalarExpr> digits, summed;
  ArrayRef<Candidate> group;
  ArrayRef<LoopAccumulate> followers;
  unsigned number;
  Location loc;
  SmallVector<ParallelLoop> loops;
  ArrayRef<std::pair<Value, Value>> handover;
  ExprAttr count;    // of iteration numbers
  OpBuilder builder; // at the end of the kernel
  ProgramNumbers programs;
  Value zero;
  Value iteration; // the number that a program stands for
  /// Which of the partial sums a program computes, and how many there are; null
  /// for whole sums.
  Value partial, stride;
  ExprAttr partials;
  /// The sums so far, for each candidate.
  SmallVector<Value> sums;
  llvm::DenseSet<Operation *> followed;
  Reason reason;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_INTERCHANGEDKERNEL_H
