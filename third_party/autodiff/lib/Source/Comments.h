//===- Comments.h - What the lines of a derived kernel come from *- C++ -*-===//
#ifndef AUTODIFF_SOURCE_COMMENTS_H
#define AUTODIFF_SOURCE_COMMENTS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::autodiff::source {

/// The user's statements whose adjoints a kernel computes, with the formulas of
/// the rules that made these.
class Comments {
public:
  Comments() = default;
  explicit Comments(Operation *kernel);

  /// The comment above what `op` is printed as: lines of at most `columns`, if
  /// the adjoint of a statement begins there, else none.
  SmallVector<std::string> take(Operation *op, size_t columns);

private:
  // By file and line. What has been printed is gone.
  llvm::StringMap<llvm::SetVector<llvm::StringRef>> statements;
};

} // namespace mlir::autodiff::source

#endif // AUTODIFF_SOURCE_COMMENTS_H
