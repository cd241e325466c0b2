//===- TritonDialect.td - the tt dialect ---------------------*- tablegen -*-===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_DIALECT_TD
#define TRITON_DIALECT_TD

include "mlir/IR/OpBase.td"

def Triton_Dialect : Dialect {
  let name = "tt";
  let cppNamespace = "::mlir::triton";
  let summary = "Triton's tile-level IR (TTIR)";
  let description = [{
    A definition of Triton's `tt` dialect that is text-compatible, both ways,
    with what Triton 3.6 to 3.9 prints. Text is the only contract with Triton:
    nothing here links against it.

    Discardable attributes with a `tt.` prefix (`tt.divisibility`,
    `tt.contiguity`, `tt.num_stages`, ...) are kept on whatever carries them.
  }];

  let dependentDialects = [
    "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect",
    "::mlir::cf::ControlFlowDialect",
    "::mlir::ub::UBDialect"
  ];

  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = "void registerTypes();";
}

#endif // TRITON_DIALECT_TD
