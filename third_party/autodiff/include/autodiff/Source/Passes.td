//===- Passes.td - What comes before printing as Python ----*- tablegen -*-===//
#ifndef AUTODIFF_SOURCE_PASSES_TD
#define AUTODIFF_SOURCE_PASSES_TD

include "mlir/Pass/PassBase.td"

def LegalizeSource : Pass<"autodiff-legalize-source", "::mlir::triton::FuncOp"> {
  let summary = "write what has no form in Python with operations that have one";
  let description = [{
    Division that rounds down or up becomes division that rounds towards zero,
    with a correction. A truncation to one bit becomes a comparison with the
    last bit. An atomic operation gets a mask. Both what is compiled and what is
    printed as Python go through this pass.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::triton::TritonDialect"];
}

def FitFrontend : Pass<"autodiff-fit-frontend", "::mlir::triton::FuncOp"> {
  let summary = "rewrite operations that Triton compiles but its frontend "
                "refuses";
  let description = [{
    A product that sums over few elements is padded with zeros. The blocks in
    the scalar function of a map become branches. What is printed as Python goes
    through this pass; what is compiled need not.
  }];
  let options = [
    ListOption<"leastSums", "least-sums", "int64_t",
               "over how many elements a product sums at least, for elements of "
               "8, 16, 32 and 64 bits">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect",
                           "::mlir::triton::TritonDialect"];
}

#endif // AUTODIFF_SOURCE_PASSES_TD
