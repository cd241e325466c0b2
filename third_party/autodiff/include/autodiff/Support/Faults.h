//===- Faults.h - The table of others' faults -------------------*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_FAULTS_H
#define AUTODIFF_SUPPORT_FAULTS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::autodiff {

/// The first version that does not have a fault of the table (`faults.json`):
/// "3.8". It is empty if there is none yet, or no such fault.
StringRef getRightVersion(StringRef fault);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_FAULTS_H
