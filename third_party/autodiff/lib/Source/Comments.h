//===- Comments.h - What the lines of a derived kernel come from *- C++ -*-===//
#ifndef AUTODIFF_SOURCE_COMMENTS_H
#define AUTODIFF_SOURCE_COMMENTS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::autodiff::source {

/// The user's statements whose adjoints a kernel computes, with the formulas of
/// their rules.
class Comments {
public:
  Comments() = default;
  explicit Comments(Operation *kernel);

  /// The comment above the line for `op`, in lines of at most `columns`; none
  /// unless the adjoint of a statement begins there.
  SmallVector<std::string> take(Operation *op, size_t columns);

private:
  // Formulas by file and line; removed once they are printed.
  llvm::StringMap<llvm::SetVector<llvm::StringRef>> statements;
};

} // namespace mlir::autodiff::source

#endif // AUTODIFF_SOURCE_COMMENTS_H
