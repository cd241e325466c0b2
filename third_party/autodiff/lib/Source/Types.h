//===- Types.h - Types and constants in Python ------------------*- C++ -*-===//
#ifndef AUTODIFF_SOURCE_TYPES_H
#define AUTODIFF_SOURCE_TYPES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace mlir::autodiff::source {

/// The name of an element type in `triton.language`, `tl.float32`. Integers are
/// signed unless `isUnsigned`.
std::string typeText(Type element, bool isUnsigned = false);

/// A shape in brackets, `[64, 64]`; `[]` for a scalar.
std::string shapeText(Type type);

/// The value of all elements of a constant; none if they differ.
std::optional<Attribute> elementOf(Value value);

/// A number as a Python literal.
std::string literalText(Attribute element, bool isUnsigned = false);

/// A Python string literal.
std::string quoted(llvm::StringRef text);

} // namespace mlir::autodiff::source

#endif // AUTODIFF_SOURCE_TYPES_H
