//===- InitAll.h - Everything the tools know --------------------*- C++ -*-===//

#ifndef AUTODIFF_INITALL_H
#define AUTODIFF_INITALL_H

#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Forward/Passes.h"
#include "autodiff/Plan/Differentiate.h"
#include "autodiff/Source/Passes.h"
#include "autodiff/Target/Passes.h"
#include "autodiff/Transforms/Passes.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"

#include "autodiff/CPU/Compile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Transforms/Passes.h"

#include <mutex>

namespace mlir::autodiff {

#define GEN_PASS_REGISTRATION
#include "autodiff/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "autodiff/Forward/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "autodiff/Target/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "autodiff/Source/Passes.h.inc"

/// The dialects that TTIR is written in.
inline void registerTritonDialects(DialectRegistry &registry) {
  registry.insert<triton::TritonDialect, triton::gpu::TritonGPUDialect,
                  arith::ArithDialect, cf::ControlFlowDialect, gpu::GPUDialect,
                  LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect,
                  ub::UBDialect>();
}

/// TTIR's dialects and those that our passes produce.
inline void registerAllDialects(DialectRegistry &registry) {
  registerTritonDialects(registry);
  registry.insert<AutodiffDialect>();
  cpu::registerDialects(registry);
}

/// Passes, and pipelines of them, that can be named in a textual pipeline.
inline void registerAllPasses() {
  static std::once_flag registered;
  std::call_once(registered, [] {
    mlir::registerTransformsPasses();
    registerAutodiffPasses();
    registerAutodiffForwardPasses();
    registerAutodiffTargetPasses();
    registerAutodiffSourcePasses();
    registerPipelines();
    registerForwardPipeline();
    registerFunctionPipeline();
    cpu::registerPasses();
  });
}

} // namespace mlir::autodiff

#endif // AUTODIFF_INITALL_H
