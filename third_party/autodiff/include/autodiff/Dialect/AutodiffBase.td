//===- AutodiffBase.td - The dialect itself -----------------*- tablegen -*-===//
#ifndef AUTODIFF_BASE
#define AUTODIFF_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Autodiff_Dialect : Dialect {
  let name = "autodiff";
  let cppNamespace = "::mlir::autodiff";
  let summary = "Intermediate steps of differentiating a Triton kernel";
  let useDefaultAttributePrinterParser = 1;
  let hasRegionArgAttrVerify = 1;
}

class Autodiff_Op<string mnemonic, list<Trait> traits = []>
    : Op<Autodiff_Dialect, mnemonic, traits>;

#endif // AUTODIFF_BASE
