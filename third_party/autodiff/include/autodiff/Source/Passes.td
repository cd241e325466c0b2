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

#endif // AUTODIFF_SOURCE_PASSES_TD
