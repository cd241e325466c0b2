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

/// A user-defined derivative of an operation that the compiler does not know.
struct UserRule {
  /// The user's name, for errors.
  std::string name;
  /// The inline assembly or the symbol that it is for; the other is empty.
  std::string assembly, symbol;
  /// A module with a function that computes it; see docs/plan.md.
  std::string ttir;
  /// It pushes tangents forward; it is the derivative of what it is for.
  bool forward = false, exact = false;
};

/// Adds the rule's function to `module` in the form that autodiff-link-rules
/// expects.
LogicalResult importRule(const UserRule &rule, ModuleOp module);

/// What the caller wants to have differentiated, and what plans must not do.
struct Request {
  /// Ways to rearrange programs, loops and tiles, so that a gradient needs
  /// fewer passes, or what several programs contribute to it is summed without
  /// atomics.
  enum class Schedule { Batch, Unravel, Merge, Interchange, Persist };

  /// Arguments to differentiate with respect to; all float pointers if absent.
  std::optional<SmallVector<unsigned>> wanted;
  /// Arguments whose stored content has an upstream gradient; all float
  /// pointers if absent.
  std::optional<SmallVector<unsigned>> cotangents;
  /// Derive no plan but a kernel that computes tangents, from those of these
  /// arguments.
  std::optional<SmallVector<unsigned>> tangents;
  /// Arguments of that kernel whose content nobody reads afterwards.
  SmallVector<unsigned> unread;
  /// Arguments of that kernel that hold what it would store to them.
  SmallVector<unsigned> left;
  /// Arguments of that kernel from which one program takes what is there.
  SmallVector<unsigned> taken;
  /// Tangents of what atomic maxima, minima and exchanges leave are computed by
  /// a kernel that runs later; it is that kernel that is wanted.
  bool later = false, settle = false;
  /// The kernel with tangents is not differentiated again.
  bool last = false;
  /// It may hold more at a time, if that makes it faster.
  bool ample = false;
  /// The derived kernels are differentiated again.
  bool again = false;
  /// Arguments for which a check failed: their gradients are added atomically.
  SmallVector<unsigned> atomic;
  /// Arguments for which a check failed: stored addresses may repeat.
  SmallVector<unsigned> repeated;
  /// Arguments with a gradient whose addresses reach so far that accesses have
  /// to be masked.
  SmallVector<unsigned> confine;
  /// Integer arguments that are multiples of 16 in a launch.
  SmallVector<unsigned> aligned;
  /// Components of descriptors, and their values in a launch.
  SmallVector<std::pair<unsigned, int64_t>> known;
  /// Components of descriptors, and an earlier one that has the same value in a
  /// launch.
  SmallVector<std::pair<unsigned, int64_t>> same;
  SmallVector<UserRule> rules;
  /// The device that the kernels are for; null if it is not given.
  const Target *target = nullptr;
  /// The kernels are for a Triton with its own barrier operation.
  bool ownBarriers = false;
  bool save = true;
  bool reload = true;
  /// Check every access of the derived kernels.
  bool check = false;
  /// Assume facts that only a launch can check, and list them in the plan.
  bool assume = true;
  /// Lengths of the axes of tiles that iterations of all loops, or digits of
  /// positions, become, as an earlier plan has offered; empty to leave loops
  /// and positions as they are.
  SmallVector<int64_t> axes;
  /// Leave them as they are, whatever a plan may offer.
  bool declinesAxes = false;
  /// Record only some iterations of a loop, and run the others once more.
  bool checkpoint = false;
  /// The largest factor by which tiles may become longer.
  unsigned widen = 4;
  /// Refuse gradients that would have to be added atomically.
  bool deterministic = false;
  /// Rearrange programs, loops and tiles; if not, kernels stay as they are
  /// derived, on the forward's grid.
  bool scheduled = true;
  /// The device reduces in any order, with arguments swapped or not.
  bool anyOrder = false;
  /// Return what passes have decided and why, instead of a plan, whether there
  /// is one or not.
  bool explain = false;
  /// The schedules to use wherever they are possible; if absent, all are used
  /// where they pay.
  std::optional<SmallVector<Schedule>> schedules;

  /// A program that holds a whole row in a tile computes values again instead
  /// of saving them.
  bool saves() const { return save && axes.size() != 1; }
  bool allows(Schedule schedule) const {
    return !schedules || llvm::is_contained(*schedules, schedule);
  }

  /// Reads a request; emits an error at `loc` if it is malformed.
  static FailureOr<Request> parse(llvm::StringRef json, Location loc);
};

/// Triton's spelling of a type in a plan: "f16", "i32", "ptr<f16>".
std::string spellType(Type type);

/// The text of `kernel` alone in a module, without our attributes.
std::string printKernel(triton::FuncOp kernel);

/// The plan that the derived kernels of `module` make up.
std::string printPlan(ModuleOp module);

} // namespace mlir::autodiff

#endif // AUTODIFF_PLAN_PLAN_H
