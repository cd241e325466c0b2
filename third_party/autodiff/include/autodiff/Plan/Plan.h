//===- Plan.h - What to launch for a gradient -------------------*- C++ -*-===//
//
// Differentiating a kernel yields a plan: kernels, their operands, buffers,
// and facts that must hold when it is launched. Requests and plans are JSON;
// docs/plan.md describes them.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_PLAN_PLAN_H
#define AUTODIFF_PLAN_PLAN_H

#include "autodiff/Support/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>

namespace mlir::autodiff {

/// The user's derivative of an operation that the compiler does not know.
struct UserRule {
  /// For errors.
  std::string name;
  /// The inline assembly or the symbol that it is for; the other is empty.
  std::string assembly, symbol;
  /// A module with a function that computes it; see docs/plan.md.
  std::string ttir;
};

/// Adds the rule's function to `module` in the form that autodiff-link-rules
/// expects.
LogicalResult importRule(const UserRule &rule, ModuleOp module);

/// What the caller wants differentiated and what it rules out.
struct Request {
  /// Ways to rearrange programs, loops and tiles, so that a gradient needs
  /// fewer passes, or what several programs contribute to it is summed without
  /// atomics.
  enum class Schedule { Batch, Unravel, Merge, Interchange, Persist };

  /// Arguments to differentiate with respect to; all float pointers if absent.
  std::optional<SmallVector<unsigned>> wanted;
  /// Arguments whose stored content has an upstream gradient; likewise.
  std::optional<SmallVector<unsigned>> cotangents;
  /// Arguments for which a check failed: gradients must meet in atomics.
  SmallVector<unsigned> atomic;
  /// Arguments for which a check failed: stored addresses may repeat.
  SmallVector<unsigned> repeated;
  /// Arguments whose gradient reaches so far that it has to be masked.
  SmallVector<unsigned> confine;
  /// Integers that are multiples of 16 in a launch.
  SmallVector<unsigned> aligned;
  /// Parts of descriptors, and what they are there.
  SmallVector<std::pair<unsigned, int64_t>> known;
  /// Parts of descriptors, and an earlier one that is the same there.
  SmallVector<std::pair<unsigned, int64_t>> same;
  SmallVector<UserRule> rules;
  /// The device that the kernels are for; null if that is not said.
  const Target *target = nullptr;
  /// The kernels are for a Triton with barriers of its own: 3.7 and later.
  bool ownBarriers = false;
  bool save = true;
  bool reload = true;
  /// Check every access of the derived kernels.
  bool check = false;
  /// Rely on what only a launch can tell, and say so in the plan.
  bool assume = true;
  /// How long the axes of tiles are that iterations of all loops, or digits of
  /// positions, become, as a plan has offered; empty if these stay what they
  /// are.
  SmallVector<int64_t> axes;
  /// They do, whatever a plan may offer.
  bool declinesAxes = false;
  /// Record only some iterations of a loop, and run the others once more.
  bool checkpoint = false;
  /// The largest factor by which tiles may become longer.
  unsigned widen = 4;
  /// Refuse what would have to be summed with atomics.
  bool deterministic = false;
  /// Look for schedules; otherwise kernels are as they are derived, on the
  /// forward's grid.
  bool scheduled = true;
  /// The device combines what is reduced in any order, sides swapped.
  bool anyOrder = false;
  /// The answer is what passes have decided on the way, and why, in place of a
  /// plan, whether there is one or not.
  bool explain = false;
  /// Those to use, wherever they apply; where they pay if absent.
  std::optional<SmallVector<Schedule>> schedules;

  /// A program that holds all of a row computes it again.
  bool saves() const { return save && axes.size() != 1; }
  bool allows(Schedule schedule) const {
    return !schedules || llvm::is_contained(*schedules, schedule);
  }

  /// Reads a request; emits an error at `loc` if it is malformed.
  static FailureOr<Request> parse(llvm::StringRef json, Location loc);
};

/// Triton's spelling of a type in a plan: "f16", "i32", "ptr<f16>".
std::string spellType(Type type);

/// The plan that the derived kernels of `module` make up.
std::string printPlan(ModuleOp module);

} // namespace mlir::autodiff

#endif // AUTODIFF_PLAN_PLAN_H
