//===- CheckText.h - Text that MLIR's parser does not survive ---*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_CHECKTEXT_H
#define AUTODIFF_SUPPORT_CHECKTEXT_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"

namespace mlir::autodiff {

/// Fails, with an error at its place, on text that would take MLIR's parser
/// down with it. TTIR never contains any. Call it before parsing.
LogicalResult checkText(llvm::StringRef text, llvm::StringRef fileName,
                        MLIRContext *context);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_CHECKTEXT_H
