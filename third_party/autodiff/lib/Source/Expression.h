//===- Expression.h - Operations as expressions of Python -------*- C++ -*-===//
#ifndef AUTODIFF_SOURCE_EXPRESSION_H
#define AUTODIFF_SOURCE_EXPRESSION_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace mlir::autodiff::source {

/// How tightly operators bind, as Python has it.
enum class Binding { Compare, Or, Xor, And, Shift, Sum, Product, Sign, Atom };

/// A part of a line, and what binds it together.
struct Text {
  std::string text;
  Binding binding = Binding::Atom;

  /// In parentheses where something binds more tightly.
  std::string within(Binding outer) const {
    return binding < outer ? "(" + text + ")" : text;
  }
};

/// How an operand is used, which decides what may stand for it.
enum class Use {
  /// Beside an operand that has the shape and type of the result: a literal or
  /// a smaller tile will do.
  Joined,
  /// The same, of a comparison, or a function, that takes literals for numbers
  /// of 32 bits.
  Passed,
  /// By itself: it must have its shape and type.
  Alone,
  /// The same, of which a method is called: a literal has none.
  Object,
  /// As a number that Triton converts and extends to what a pointer has.
  Stored,
  /// More than once, so it has to be a variable.
  Repeated
};

/// Asks for the text of an operand. Python evaluates operands in the order in
/// which they are asked for.
using Operand = llvm::function_ref<Text(Value, Use)>;

/// The text of an operation with a result, or of a store; none for operations
/// that have no form in Python.
std::optional<Text> expressionOf(Operation *op, Operand operand);

/// The same, of loads, stores and atomics through pointers.
std::optional<Text> memoryText(Operation *op, Operand operand);

/// The same, of what makes or uses a tensor descriptor.
std::optional<Text> descriptorText(Operation *op, Operand operand);

/// The operands of `op` in the order in which Python evaluates them, with their
/// uses; empty for operations without a form.
std::optional<SmallVector<std::pair<Value, Use>>> usesOf(Operation *op);

/// Whether a shorter or single operand of `op` gets the shape of its result.
bool joins(Operation *op);

} // namespace mlir::autodiff::source

#endif // AUTODIFF_SOURCE_EXPRESSION_H
