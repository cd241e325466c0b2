//===- CheckText.h - Text that MLIR's parser does not survive ---*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_CHECKTEXT_H
#define AUTODIFF_SUPPORT_CHECKTEXT_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"

namespace mlir::autodiff {

/// Fails, with an error at its location, on text that would crash MLIR's
/// parser. TTIR never contains any. Has to be called before parsing.
LogicalResult checkText(llvm::StringRef text, llvm::StringRef fileName,
                        MLIRContext *context);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_CHECKTEXT_H
