//===- Names.h - What values are called in Python ---------------*- C++ -*-===//
#ifndef AUTODIFF_SOURCE_NAMES_H
#define AUTODIFF_SOURCE_NAMES_H

#include "mlir/IR/ValueRange.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::autodiff::source {

/// Names of the variables of a function. Each is used once: if a name is
/// assigned again in a loop, Triton carries it.
class Names {
public:
  Names();

  /// A new name for a value: its name in the user's source, if known.
  std::string give(Value value, llvm::StringRef otherwise = "");
  /// New names for several values, in alphabetical order.
  SmallVector<std::string> giveSorted(ValueRange values,
                                      ArrayRef<llvm::StringRef> otherwise);
  /// A new name that begins with `wish`.
  std::string unique(llvm::StringRef wish);

private:
  llvm::StringSet<> taken;
};

} // namespace mlir::autodiff::source

#endif // AUTODIFF_SOURCE_NAMES_H
