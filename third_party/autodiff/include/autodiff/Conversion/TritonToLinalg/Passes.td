//===- Passes.td - TTIR to linalg ----------------------------*- tablegen -*-===//

#ifndef AUTODIFF_CONVERSION_TRITONTOLINALG_PASSES_TD
#define AUTODIFF_CONVERSION_TRITONTOLINALG_PASSES_TD

include "mlir/Pass/PassBase.td"

def TritonToLinalg : Pass<"triton-to-linalg", "::mlir::ModuleOp"> {
  let summary = "Lower TTIR to loops and linalg operations over tensors";
  let description = [{
    Every `tt.func` becomes a `func.func` with one more argument, a pointer to
    the launch context. Tiles become tensors; tiles of pointers become a base
    pointer and a tensor of byte offsets. Elementwise expressions are evaluated
    inside the operation that needs them (a store, a reduction, a tile with
    several users), loads and stores become scalar accesses under their masks,
    `tt.dot` becomes a loop nest over vectors.
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "unsigned", "256",
           "Width of the target's vector registers">,
    Option<"vectorRegisters", "vector-registers", "unsigned", "16",
           "Number of the target's vector registers">,
    Option<"copyCarried", "copy-carried", "bool", "false",
           "Copy what loops carry on instead of computing it in place">
  ];
  let dependentDialects = [
    "arith::ArithDialect", "bufferization::BufferizationDialect",
    "cf::ControlFlowDialect", "func::FuncDialect", "linalg::LinalgDialect",
    "LLVM::LLVMDialect", "math::MathDialect", "scf::SCFDialect",
    "tensor::TensorDialect", "vector::VectorDialect"
  ];
}

#endif // AUTODIFF_CONVERSION_TRITONTOLINALG_PASSES_TD
