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
  /// Vectorize loops, from level 2 on.
  bool vectorize = true;
};

/// Reads compile options from JSON; unknown members are ignored.
FailureOr<CompileOptions> parseCompileOptions(Location loc, StringRef json);

/// A relocatable object and its description.
struct CompiledObject {
  std::string object;
  /// JSON with the kernel's symbol, the types of its arguments, and the stack
  /// size of one program.
  std::string metadata;
};

/// Compiles the one public function of a TTIR module for this machine.
FailureOr<CompiledObject> compile(ModuleOp module,
                                  const CompileOptions &options);

/// Options of the passes from TTIR to the LLVM dialect.
struct PipelineOptions {
  unsigned vectorBits, vectorRegisters;
  /// Copy the tiles that loops carry instead of updating them in place. Needed
  /// where bufferization does not see that updating in place is possible.
  bool copyCarried = false;
};

/// The passes from TTIR to the LLVM dialect.
void buildPipeline(OpPassManager &pm, const PipelineOptions &options);

/// Registers the dialects, interfaces and translations of the pipeline.
void registerDialects(DialectRegistry &registry);

/// Registers the passes of the pipeline by name.
void registerPasses();

/// A code generator for this machine.
std::unique_ptr<llvm::TargetMachine>
createHostTarget(const CompileOptions &options, std::string &error);

/// Optimizes a kernel's LLVM IR; prints an error if that fails.
LogicalResult optimize(llvm::Module &module, llvm::TargetMachine &target,
                       const CompileOptions &options, std::string &error);

/// The width in bits and the number of this machine's vector registers.
std::pair<unsigned, unsigned> getVectorRegisters();

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_CPU_COMPILE_H
