//===- Runtime.h - What generated code calls --------------------*- C++ -*-===//

#ifndef AUTODIFF_LIB_CPU_RUNTIME_H
#define AUTODIFF_LIB_CPU_RUNTIME_H

#include "autodiff/CPU/Kernel.h"

#include "llvm/ADT/ArrayRef.h"

#include <mutex>
#include <string>

namespace mlir::autodiff::cpu {

/// Registers LLVM's code generator for this machine. LLVM's table of targets is
/// not made for several threads, and compilers and the loader may run in some.
void initializeHost();

/// Data that the programs of one launch share.
struct LaunchState {
  std::mutex mutex;
  /// The first assertion that failed.
  std::string failure;
};

/// A function that generated code may call.
struct RuntimeFunction {
  std::string name;
  void *address;
};

llvm::ArrayRef<RuntimeFunction> getRuntimeFunctions();
/// Mathematical functions that the C library lacks.
llvm::ArrayRef<RuntimeFunction> getSpecialFunctions();
/// Arithmetic that rounds in a direction: "tad_add_rz".
llvm::ArrayRef<RuntimeFunction> getRoundedFunctions();

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_LIB_CPU_RUNTIME_H
