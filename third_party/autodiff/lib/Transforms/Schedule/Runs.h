//===- Runs.h - What an access touches at a time ----------------*- C++ -*-===//
//
// A run is a part of a tile of which all lanes that are on have addresses of
// their own: the lanes along an axis where each is a constant step from the
// one before it (a row of a table), or else a single lane.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_LIB_TRANSFORMS_SCHEDULE_RUNS_H
#define AUTODIFF_LIB_TRANSFORMS_SCHEDULE_RUNS_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include <optional>

namespace mlir::autodiff {

/// The axis of a pointer that runs lie along; none if every lane is one.
std::optional<unsigned> findRunAxis(Value pointer);
/// How many elements lie from the first to the last lane of its runs.
int64_t getRunSpan(Value pointer, std::optional<unsigned> axis);
/// How many elements, an i64 or a tile of them, lie between the memory of an
/// argument and a pointer into it.
Value offsetFrom(OpBuilder &builder, Location loc, Value argument,
                 Value pointer);

/// Attribute of atomic additions: the axis that runs lie along; -1 if every
/// lane is one.
constexpr llvm::StringLiteral kRunAxisAttr = "autodiff.run_axis";

/// The runs of an atomic addition to the memory of a kernel's argument: values
/// with a number, or a condition, for each.
struct Runs {
  /// Decides what the runs of an addition are, and notes that in the attribute,
  /// so that copies of the operation have the same ones.
  static void mark(triton::AtomicRMWOp add);
  /// What follows is about marked additions. Whether every lane is a run.
  static bool areLanes(triton::AtomicRMWOp add);
  /// The lanes of a run, and how many elements lie from the first to the last
  /// one.
  static int64_t getLanes(triton::AtomicRMWOp add);
  static int64_t getSpan(triton::AtomicRMWOp add);

  static Runs of(OpBuilder &builder, triton::AtomicRMWOp add);
  /// A condition of runs as one of lanes.
  static Value toLanes(OpBuilder &builder, triton::AtomicRMWOp add,
                       Value condition);

  /// The offsets from the argument of the first and the last element that a run
  /// touches, i64, if it has lanes that are on.
  Value first, last;
  Value isActive;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_LIB_TRANSFORMS_SCHEDULE_RUNS_H
