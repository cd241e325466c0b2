//===- TripCounts.h - How often loops and their bodies run ------*- C++ -*-===//
//
// Tapes must be allocated before they are filled. How many entries they need is
// an expression over the launch where loop bounds are; elsewhere a counting
// kernel (autodiff-count-trips) finds the largest trip count, and the
// expression refers to that as `counted(n)`.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_TRIPCOUNTS_H
#define AUTODIFF_ANALYSIS_TRIPCOUNTS_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <optional>

namespace mlir::autodiff {

/// Attribute of a module whose tapes hold checkpoints, to be small.
constexpr llvm::StringLiteral kCheckpointAttr = "autodiff.checkpoint";

/// Where a loop ends, and the condition (null: always) under which it runs at
/// all: its upper bound is `select(condition, end, lower)`.
struct LoopEnd {
  Value end, condition;
};
LoopEnd getEnd(scf::ForOp loop);

/// The most iterations that `loop`, a loop of the primal, has in any program
/// and in any iteration of the loops around it; null if it is neither known at
/// the launch nor counted.
ExprAttr mostIterations(Operation *loop);

/// How often, at most, one program runs what `op` stands beside: the product of
/// the most iterations of all loops around it.
ExprAttr mostExecutions(Operation *op);

/// Whether an expression depends on what a counting kernel finds.
bool dependsOnCounters(ExprAttr expression);

/// The number of the current iteration of `loop`, at the insertion point
/// inside of it.
Value iterationNumber(OpBuilder &builder, Location loc, Operation *loop);

/// How many iterations `for (i = lower; i < upper; i += step)` has.
Value countIterations(OpBuilder &builder, Location loc, Value lower,
                      Value upper, Value step, bool isUnsigned);

/// The carried value of a normalized `loop` (see autodiff-normalize) that
/// counts its iterations, by its place among the results; none if there is
/// none.
std::optional<unsigned> findCounter(scf::WhileOp loop);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_TRIPCOUNTS_H
