//===- Names.h - What values are called in Python ---------------*- C++ -*-===//
#ifndef AUTODIFF_SOURCE_NAMES_H
#define AUTODIFF_SOURCE_NAMES_H

#include "mlir/IR/ValueRange.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::autodiff::source {

/// Names of the variables of a function, each given once: a name that is given
/// again in a loop would be carried by it.
class Names {
public:
  Names();

  /// A new name for a value: its own in the user's source, as far as known.
  std::string give(Value value, llvm::StringRef otherwise = "");
  /// New names for several values, in the order of the alphabet.
  SmallVector<std::string> giveSorted(ValueRange values,
                                      ArrayRef<llvm::StringRef> otherwise);
  /// A new name that begins like `wish`.
  std::string unique(llvm::StringRef wish);

private:
  llvm::StringSet<> taken;
};

} // namespace mlir::autodiff::source

#endif // AUTODIFF_SOURCE_NAMES_H
