//===- Remarks.h - What passes decide, and why ------------------*- C++ -*-===//
//
// A pass that could do something about a load, a store or a loop says whether
// it did, in a remark of MLIR's: "passed", or "missed" with what stands in the
// way. A reason is true if the schedule becomes another one when what it names
// is removed.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_TRANSFORMS_REMARKS_H
#define AUTODIFF_TRANSFORMS_REMARKS_H

#include "autodiff/Analysis/Reason.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::autodiff {

/// What a remark is about: a place of the user's, and the number of the
/// argument whose gradient, or whose cotangent, is concerned.
struct Subject {
  /// An operation of a kernel; of an autodiff.accumulate or autodiff.upstream,
  /// the argument is known.
  Subject(Operation *op);
  template <typename OpT,
            typename = std::enable_if_t<std::is_base_of_v<OpState, OpT>>>
  Subject(OpT op) : Subject(op.getOperation()) {}
  Subject(Operation *op, unsigned argument)
      : op(op), loc(op->getLoc()), argument(argument) {}
  /// Where an operation of `kernel` was.
  Subject(Operation *kernel, Location loc) : op(kernel), loc(loc) {}

  Operation *op;
  Location loc;
  std::optional<unsigned> argument;
};

/// What becomes of a schedule, by the name that remarks have for it.
class Remarks {
public:
  constexpr explicit Remarks(llvm::StringLiteral name) : name(name) {}

  /// Says what was done.
  template <typename... Ts>
  void passed(Subject subject, const char *format, const Ts &...values) const {
    if (Reason what = because(subject.op, format, values...))
      emit(subject, what, /*isTaken=*/true);
  }
  /// Says what stands in the way.
  void missed(Subject subject, const Reason &why) const {
    if (why)
      emit(subject, why, /*isTaken=*/false);
  }
  template <typename... Ts>
  void missed(Subject subject, const char *format, const Ts &...values) const {
    missed(subject, because(subject.op, format, values...));
  }

private:
  void emit(Subject subject, const Reason &reason, bool isTaken) const;

  llvm::StringLiteral name;
};

/// The key of the argument in a remark's arguments.
constexpr llvm::StringLiteral kArgumentKey = "Argument";
/// That of its text.
constexpr llvm::StringLiteral kReasonKey = "Reason";

} // namespace mlir::autodiff

#endif // AUTODIFF_TRANSFORMS_REMARKS_H
