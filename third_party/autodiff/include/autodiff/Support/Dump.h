//===- Dump.h - Printing IR around passes -----------------------*- C++ -*-===//

#ifndef AUTODIFF_SUPPORT_DUMP_H
#define AUTODIFF_SUPPORT_DUMP_H

#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/StringRef.h"

namespace mlir {
class PassManager;

namespace autodiff {

/// How this project prints IR for people and for Triton: locations kept, and
/// values named after the variables of the user's kernel.
OpPrintingFlags getPrintingFlags();

/// Makes `pm` print the IR before and after each of its passes when
/// MLIR_ENABLE_DUMP asks for it: "1" for every kernel, else the name of one.
/// `kernel` is the name of the user's kernel that the module was derived from,
/// if that is not the name of a function in it. Output goes to stderr, or is
/// appended to the file MLIR_DUMP_PATH.
void enableDump(PassManager &pm, llvm::StringRef kernel = {});

} // namespace autodiff
} // namespace mlir

#endif // AUTODIFF_SUPPORT_DUMP_H
