//===- CustomCall.h - Calls that stand for a user's derivative --*- C++ -*-===//
//
// Python's tracer can only put standard operations into TTIR. So a function
// with a derivative of its own ends with a call of a declared function, whose
// operands are its results, its inputs, the gradients of these, and for forward
// mode the tangents of the results. The gradients are computed from inline
// assembly that stands for the cotangents, the tangents from some that stands
// for those of the inputs.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_TRANSFORMS_CUSTOMCALL_H
#define AUTODIFF_TRANSFORMS_CUSTOMCALL_H

#include "autodiff/Dialect/Autodiff.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::autodiff {

class CustomCall {
public:
  /// The parts of `call`; none if it is a call of something else.
  static std::optional<CustomCall> find(triton::CallOp call);

  /// Writes `custom`, which is exact, as a call, so that its derivatives can be
  /// taken later.
  /// `stopped` are its values, through which no derivative flows.
  static void write(CustomVjpOp custom, ValueRange stopped);

  /// The same for a value that is not differentiated again; its inverse, which
  /// says whether `call` is one; and its end, without a derivative.
  static void write(OnceOp once);
  static bool linkOnce(triton::CallOp call);
  static bool dropOnce(triton::CallOp call);

  /// Replaces the call by an operation, which `number` keeps apart from others.
  /// It has a pushforward if it goes `forward`, and there is one. If the
  /// pullback is differentiated `again`, it has no derivative by the values.
  LogicalResult link(unsigned number, bool forward, bool again);

  /// Replaces the call by the function's results, without a derivative.
  LogicalResult drop();

private:
  /// Operations that depend on stand-ins, and what these read of what depends
  /// on the values.
  struct Part {
    SmallVector<Operation *> standIns;
    llvm::SetVector<Operation *> dependent, read;
  };

  explicit CustomCall(triton::CallOp call) : call(call) {}
  FailureOr<Part> findPart(ValueRange of, StringRef what);
  void addReaders(Part &part, ValueRange yielded);
  LogicalResult moveInto(Block &block, const Part &part, ValueRange yielded,
                         bool once);
  void replace(ValueRange by, ArrayRef<Part> parts);

  triton::CallOp call;
  StringRef rule;
  bool isExact = false;
  ValueRange values, inputs, gradients, tangents;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_TRANSFORMS_CUSTOMCALL_H
