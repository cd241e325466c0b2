//===- Expression.h - Operations as expressions of Python -------*- C++ -*-===//
#ifndef AUTODIFF_SOURCE_EXPRESSION_H
#define AUTODIFF_SOURCE_EXPRESSION_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace mlir::autodiff::source {

/// How tightly operators bind, as Python has it.
enum class Binding { Compare, Or, Xor, And, Shift, Sum, Product, Sign, Atom };

/// A part of a line, and its outermost operator.
struct Text {
  std::string text;
  Binding binding = Binding::Atom;

  /// The text, in parentheses if the operator around it binds more tightly.
  std::string within(Binding outer) const {
    return binding < outer ? "(" + text + ")" : text;
  }
};

/// How an operand is used, which decides what may be written for it.
enum class Use {
  /// Beside an operand that has the shape and type of the result: a literal or
  /// a smaller tile is allowed.
  Joined,
  /// The same, in a comparison or function that takes literals for 32-bit
  /// numbers.
  Passed,
  /// Alone: it must have its own shape and type.
  Alone,
  /// The same, as the object of a method call, which a literal cannot be.
  Object,
  /// As a value that Triton converts and broadcasts to fit a pointer.
  Stored,
  /// More than once, so it must be a variable.
  Repeated
};

/// Asks for the text of an operand. Python evaluates operands in the order in
/// which they are asked for.
using Operand = llvm::function_ref<Text(Value, Use)>;

/// The expression for an operation with a result, or for a store; none for
/// operations that cannot be written in Python.
std::optional<Text> expressionOf(Operation *op, Operand operand);

/// The same for loads, stores and atomics through pointers.
std::optional<Text> memoryText(Operation *op, Operand operand);

/// The same for operations that make or use a tensor descriptor.
std::optional<Text> descriptorText(Operation *op, Operand operand);

/// The operands of `op` in the order in which Python evaluates them, with their
/// uses; none for operations that cannot be written in Python.
std::optional<SmallVector<std::pair<Value, Use>>> usesOf(Operation *op);

/// Whether Triton broadcasts smaller or scalar operands of `op` to the shape of
/// its result.
bool joins(Operation *op);

} // namespace mlir::autodiff::source

#endif // AUTODIFF_SOURCE_EXPRESSION_H
