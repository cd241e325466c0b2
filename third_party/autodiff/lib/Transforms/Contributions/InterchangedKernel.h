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
  ParallelNest nest;
};

/// An argument whose gradient an interchanged kernel can store.
struct Candidate {
  unsigned argument;
  /// The mask of the first contribution includes the addresses of the others,
  /// given `limits`.
  SmallVector<LoopAccumulate, 0> contributions;
  SmallVector<LimitAttr, 0> limits;
  /// Numbers of iterations are below this.
  ExprAttr count;
  /// The digits of program ids that the address does not depend on.
  SmallVector<ScalarExpr> summed;
  /// What the contributions are an alternative to.
  SmallVector<Contribution> replaced;
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
  void collectNests();
  LogicalResult runNest(const ParallelNest &nest);
  LogicalResult bindShared(const ParallelNest &nest, OpBuilder &once,
                           ArrayRef<Value> indices, Regrid &regrid);
  LogicalResult runPrograms(const ParallelNest &nest, OpBuilder &b,
                            ArrayRef<Value> indices, Value from, Value to,
                            ArrayRef<unsigned> adding);
  LogicalResult runFollowers(const ParallelNest &nest, OpBuilder &b,
                             Regrid &regrid, ArrayRef<Value> indices);
  LogicalResult store(const Candidate &candidate, Value sum);
  bool differs(ArrayRef<ScalarExpr> staying) const;
  void bindAllZero(Regrid &regrid) const;
  Value indexOf(OpBuilder &b, Regrid &regrid, const ParallelLoop &loop,
                Value number) const;
  std::optional<SmallVector<Value>> indicesOf(OpBuilder &b, Regrid &regrid,
                                              const ParallelNest &nest);
  void takeNumberApart(const ParallelNest &nest);
  ArrayRef<Value> numbersOf(const ParallelNest &nest) const;
  LogicalResult bind(const ParallelNest &nest, Regrid &regrid, OpBuilder &b,
                     ArrayRef<Value> indices);
  bool isSplit() const;
  void splitPrograms(ArrayRef<ScalarExpr> staying);
  SmallVector<unsigned> candidatesOf(const ParallelNest &nest) const;
  /// Notes a value that a program of the kernel cannot compute.
  LogicalResult refuse(const char *what, const Reason &why);

  triton::FuncOp backward, kernel;
  ArrayRef<ScalarExpr> digits, summed;
  ArrayRef<Candidate> group;
  ArrayRef<LoopAccumulate> followers;
  unsigned number;
  Location loc;
  SmallVector<ParallelNest, 0> nests;
  ArrayRef<std::pair<Value, Value>> handover;
  ExprAttr count;    // of iteration numbers
  OpBuilder builder; // at the end of the kernel
  ProgramNumbers programs;
  Value zero;
  Value iteration; // the number that a program stands for
  /// The number of the iteration of each owned loop, by the innermost loop.
  llvm::DenseMap<Operation *, SmallVector<Value>> numbers;
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
