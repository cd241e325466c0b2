//===- Simplify.td - What is left behind, removed ----------*- tablegen -*-===//

def Simplify : AutodiffPass<"autodiff-simplify", "::mlir::triton::FuncOp"> {
  let summary = "fold what differentiation leaves behind";
  let description = [{
    Common factors are taken out of sums, loops and branches, sums of one
    element become reshapes, loop results that nobody uses go.
  }];
}

def Cleanup : AutodiffPass<"autodiff-cleanup", "::mlir::ModuleOp"> {
  let summary = "remove what passes have left behind in kernels";
  let description = [{
    Simplifies, canonicalizes and eliminates common subexpressions. A kernel
    that has not changed since the last cleanup is skipped.
  }];
}
