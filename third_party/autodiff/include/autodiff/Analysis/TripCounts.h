//===- TripCounts.h - How often loops and their bodies run ------*- C++ -*-===//
//
// Tapes, the buffers with a value of each iteration, are allocated before a
// kernel runs. Their length is an expression over the launch if loop bounds
// are. Otherwise a counting kernel (autodiff-count-trips) finds the largest
// trip count, and the expression refers to it as `counted(n)`.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_TRIPCOUNTS_H
#define AUTODIFF_ANALYSIS_TRIPCOUNTS_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <optional>

namespace mlir::autodiff {

/// Attribute of a module whose tapes hold only some iterations (checkpoints),
/// to save memory.
constexpr llvm::StringLiteral kCheckpointAttr = "autodiff.checkpoint";

/// Where a loop ends, and the condition (null: always) under which it runs at
/// all: its upper bound is `select(condition, end, lower)`.
struct LoopEnd {
  Value end, condition;
};
LoopEnd getEnd(scf::ForOp loop);

/// The most iterations that `loop`, a loop of the forward, has in any program
/// and in any iteration of the loops around it; null if it is neither known at
/// launch nor counted.
ExprAttr mostIterations(Operation *loop);

/// How often each program runs `loop`; none if its bounds are no numbers of the
/// launch and of program ids, or if it runs under a condition.
std::optional<ScalarExpr> findTripCount(scf::ForOp loop);

/// How often, at most, one program runs the block of `op`: the product of the
/// most iterations of all loops around it.
ExprAttr mostExecutions(Operation *op);

/// Whether an expression depends on what a counting kernel finds.
bool dependsOnCounters(ExprAttr expression);

/// The number of the current iteration of `loop`, at the insertion point
/// inside of it.
Value iterationNumber(OpBuilder &builder, Location loc, Operation *loop);

/// How many iterations `for (i = lower; i < upper; i += step)` has.
Value countIterations(OpBuilder &builder, Location loc, Value lower,
                      Value upper, Value step, bool isUnsigned);

/// Which carried value of `loop` counts its iterations; none if there is none.
/// autodiff-normalize adds one to every `scf.while`.
std::optional<unsigned> findCounter(scf::WhileOp loop);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_TRIPCOUNTS_H
