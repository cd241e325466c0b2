//===- Runtime.h - What generated code calls --------------------*- C++ -*-===//

#ifndef AUTODIFF_LIB_CPU_RUNTIME_H
#define AUTODIFF_LIB_CPU_RUNTIME_H

#include "autodiff/CPU/Kernel.h"

#include "llvm/ADT/ArrayRef.h"

#include <mutex>
#include <string>

namespace mlir::autodiff::cpu {

/// What the programs of one launch share.
struct Launch {
  std::mutex mutex;
  /// The first assertion that failed.
  std::string failure;
};

/// A function that generated code may call.
struct RuntimeFunction {
  const char *name;
  void *address;
};

llvm::ArrayRef<RuntimeFunction> getRuntimeFunctions();

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_LIB_CPU_RUNTIME_H
