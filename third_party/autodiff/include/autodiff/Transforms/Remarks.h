//===- Remarks.h - What passes decide, and why ------------------*- C++ -*-===//
//
// A pass that could do something about a load, a store or a loop says in an
// MLIR remark whether it did: "passed", or "missed" with a reason. A reason is
// true if removing its cause makes the pass do it.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_TRANSFORMS_REMARKS_H
#define AUTODIFF_TRANSFORMS_REMARKS_H

#include "autodiff/Analysis/Reason.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::autodiff {

/// What a remark is about: a location in the user's source, and the number of
/// the argument whose gradient or cotangent is concerned.
struct Subject {
  /// An operation of a kernel. An autodiff.accumulate or autodiff.upstream also
  /// gives the argument.
  Subject(Operation *op);
  template <typename OpT,
            typename = std::enable_if_t<std::is_base_of_v<OpState, OpT>>>
  Subject(OpT op) : Subject(op.getOperation()) {}
  Subject(Operation *op, unsigned argument)
      : op(op), loc(op->getLoc()), argument(argument) {}
  /// A location where `kernel` had an operation.
  Subject(Operation *kernel, Location loc) : op(kernel), loc(loc) {}

  Operation *op;
  Location loc;
  std::optional<unsigned> argument;
};

/// The remarks of one schedule, by the name that users see.
class Remarks {
public:
  constexpr explicit Remarks(llvm::StringLiteral name) : name(name) {}

  /// Remarks that something was done.
  template <typename... Ts>
  void passed(Subject subject, const char *format, const Ts &...values) const {
    if (Reason what = because(subject.op, format, values...))
      emit(subject, what, /*isTaken=*/true);
  }
  /// Remarks why something was not done.
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
/// The key of the reason in a remark's arguments.
constexpr llvm::StringLiteral kReasonKey = "Reason";

} // namespace mlir::autodiff

#endif // AUTODIFF_TRANSFORMS_REMARKS_H
