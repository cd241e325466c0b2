//===- Types.h - Types and constants in Python ------------------*- C++ -*-===//
#ifndef AUTODIFF_SOURCE_TYPES_H
#define AUTODIFF_SOURCE_TYPES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace mlir::autodiff::source {

/// How `triton.language` spells the type of an element: `tl.float32`; integers
/// are signed unless stated otherwise.
std::string typeText(Type element, bool isUnsigned = false);

/// A shape in brackets: `[64, 64]`; that of a scalar is `[]`.
std::string shapeText(Type type);

/// The number that all elements of a constant are; none if they differ.
std::optional<Attribute> elementOf(Value value);

/// A number as a literal of Python.
std::string literalText(Attribute element, bool isUnsigned = false);

/// A string of Python.
std::string quoted(llvm::StringRef text);

} // namespace mlir::autodiff::source

#endif // AUTODIFF_SOURCE_TYPES_H
