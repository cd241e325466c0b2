//===- Compile.h - TTIR to native objects -----------------------*- C++ -*-===//

#ifndef AUTODIFF_CPU_COMPILE_H
#define AUTODIFF_CPU_COMPILE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir {
class OpPassManager;
class DialectRegistry;
} // namespace mlir

namespace mlir::autodiff::cpu {

/// What a caller can choose about code generation.
struct CompileOptions {
  unsigned optLevel = 2;
  /// Make vectors of loops, from level 2.
  bool vectorize = true;
};

/// Reads compile options from JSON; unknown members are ignored.
FailureOr<CompileOptions> parseCompileOptions(Location loc, StringRef json);

/// A relocatable object and its description.
struct CompiledObject {
  std::string object;
  /// JSON: the kernel's symbol, the types of its arguments, the stack that one
  /// program needs.
  std::string metadata;
};

/// Compiles the one public function of a TTIR module for this machine.
FailureOr<CompiledObject> compile(ModuleOp module,
                                  const CompileOptions &options);

/// Choices of the passes from TTIR to the LLVM dialect.
struct PipelineOptions {
  unsigned vectorBits, vectorRegisters;
  /// Copy what loops carry on instead of computing it in place. Needed where
  /// bufferization cannot see that computing in place is possible.
  bool copyCarried = false;
};

/// The passes from TTIR to the LLVM dialect.
void buildPipeline(OpPassManager &pm, const PipelineOptions &options);

/// The dialects, interfaces and translations that the pipeline needs.
void registerDialects(DialectRegistry &registry);

/// The passes that the pipeline consists of, under their names.
void registerPasses();

/// A code generator for this machine.
std::unique_ptr<llvm::TargetMachine>
createHostTarget(const CompileOptions &options, std::string &error);

/// Makes fast code of the code of a kernel; says what is wrong if it fails.
LogicalResult optimize(llvm::Module &module, llvm::TargetMachine &target,
                       const CompileOptions &options, std::string &error);

/// Width in bits and number of this machine's vector registers.
std::pair<unsigned, unsigned> getVectorRegisters();

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_CPU_COMPILE_H
