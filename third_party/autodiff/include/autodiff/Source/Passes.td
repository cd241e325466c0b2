//===- Passes.td - What comes before printing as Python ----*- tablegen -*-===//
#ifndef AUTODIFF_SOURCE_PASSES_TD
#define AUTODIFF_SOURCE_PASSES_TD

include "mlir/Pass/PassBase.td"

def LegalizeSource : Pass<"autodiff-legalize-source", "::mlir::triton::FuncOp"> {
  let summary = "write what has no form in Python with operations that have one";
  let description = [{
    Division that rounds down or up becomes division that rounds towards zero and
    a correction; the last bit of a number, a comparison; an atomic operation gets
    a mask. What is compiled and what is printed go through this alike.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::triton::TritonDialect"];
}

def FitFrontend : Pass<"autodiff-fit-frontend", "::mlir::triton::FuncOp"> {
  let summary = "write what Triton compiles, but its frontend refuses, as it takes it";
  let description = [{
    A product over few elements sums over more, with zeros between these. The
    scalar function of a map has branches in place of blocks. What is printed goes
    through this; what is compiled need not.
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
