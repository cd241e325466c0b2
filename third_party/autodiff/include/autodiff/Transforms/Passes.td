//===- Passes.td - From a primal kernel to its backward -----*- tablegen -*-===//
#ifndef AUTODIFF_PASSES
#define AUTODIFF_PASSES

include "mlir/Pass/PassBase.td"

class AutodiffPass<string argument, string operation> : Pass<argument, operation> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::autodiff::AutodiffDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::triton::TritonDialect",
    "::mlir::ub::UBDialect"
  ];
}

include "autodiff/Transforms/Normalize.td"
include "autodiff/Transforms/Programs.td"
include "autodiff/Transforms/Softmax.td"
include "autodiff/Transforms/Reverse.td"
include "autodiff/Transforms/Merge.td"
include "autodiff/Transforms/Schedule.td"
include "autodiff/Transforms/Tiles.td"
include "autodiff/Transforms/Simplify.td"

#endif // AUTODIFF_PASSES
