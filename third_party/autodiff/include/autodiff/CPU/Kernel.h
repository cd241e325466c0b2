//===- Kernel.h - Kernels in this process -----------------------*- C++ -*-===//

#ifndef AUTODIFF_CPU_KERNEL_H
#define AUTODIFF_CPU_KERNEL_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <string>

namespace mlir::autodiff::cpu {

/// What a program knows of its launch; generated code reads fields by offset.
struct ProgramContext {
  int32_t programId[3];
  int32_t gridSize[3];
  /// Always null, but the optimizer cannot know.
  void *null;
  struct LaunchState *launch;
};

/// Runs one program. `arguments[i]` points at the value of argument i.
using EntryPoint = void (*)(void **arguments, ProgramContext *context);

/// A kernel, linked into this process.
class Kernel {
public:
  /// Links an object and finds kernel `symbol` in it.
  static llvm::Expected<std::unique_ptr<Kernel>> load(llvm::StringRef object,
                                                      llvm::StringRef symbol);
  ~Kernel();

  EntryPoint getEntry() const { return entry; }
  /// Types of the arguments as TTIR spells them, every pointer as "ptr".
  const char *getSignature() const { return signature; }
  /// Bytes of stack that one program needs.
  uint64_t getStackSize() const { return stackSize; }

private:
  struct Code;
  Kernel(std::unique_ptr<Code> code);

  std::unique_ptr<Code> code;
  EntryPoint entry = nullptr;
  const char *signature = nullptr;
  uint64_t stackSize = 0;
};

/// Runs a grid of programs on `threads` threads (0: one per core, or as many as
/// TRITON_AUTODIFF_CPU_THREADS says). The error is the message of the first
/// assertion that failed.
llvm::Error launch(const Kernel &kernel, uint32_t gx, uint32_t gy, uint32_t gz,
                   void **arguments, uint32_t threads);

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_CPU_KERNEL_H
