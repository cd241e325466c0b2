//===- Runs.h - What an access touches at a time ----------------*- C++ -*-===//
//
// A *run* is a part of a tile whose lanes have distinct addresses: the lanes
// along an axis if each address is a constant distance from the one before it
// (a row of a table), or else a single lane.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_RUNS_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_RUNS_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include <optional>

namespace mlir::autodiff {

/// The axis of a tile of pointers that runs are along; none if every lane is a
/// run.
std::optional<unsigned> findRunAxis(Value pointer);
/// The distance in elements from the first to the last lane of a run.
int64_t getRunSpan(Value pointer, std::optional<unsigned> axis);
/// The distance in elements, an i64 or a tile of i64, from the start of an
/// argument's memory to a pointer into it.
Value offsetFrom(OpBuilder &builder, Location loc, Value argument,
                 Value pointer);

/// Attribute of atomic additions: the axis that runs are along; -1 if every
/// lane is a run.
constexpr llvm::StringLiteral kRunAxisAttr = "autodiff.run_axis";

/// The runs of an atomic addition to an argument's memory. Each value has a
/// number, or a condition, for each run.
struct Runs {
  /// Decides which axis the runs of an addition are along, and sets the
  /// attribute, so that clones of the operation have the same runs.
  static void mark(triton::AtomicRMWOp add);
  /// The functions below take additions with the attribute. Whether every lane
  /// is a run.
  static bool areLanes(triton::AtomicRMWOp add);
  /// The lanes of a run, and the distance in elements from the first to the
  /// last one.
  static int64_t getLanes(triton::AtomicRMWOp add);
  static int64_t getSpan(triton::AtomicRMWOp add);

  static Runs of(OpBuilder &builder, triton::AtomicRMWOp add);
  /// Turns a condition on runs into a condition on lanes.
  static Value toLanes(OpBuilder &builder, triton::AtomicRMWOp add,
                       Value condition);

  /// The distances in elements (i64) from the argument to the first and the
  /// last element that a run touches, if any of its lanes are unmasked.
  Value first, last;
  Value isActive;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_RUNS_H
