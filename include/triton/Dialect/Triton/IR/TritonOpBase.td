//===- TritonOpBase.td - what the tt operations share --------*- tablegen -*-===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_OP_BASE_TD
#define TRITON_OP_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "triton/Dialect/Triton/IR/TritonDialect.td"
include "triton/Dialect/Triton/IR/TritonTypes.td"
include "triton/Dialect/Triton/IR/TritonAttrDefs.td"

/// The device's global memory, which loads, stores and atomics share.
def GlobalMemory : Resource<"::mlir::triton::GlobalMemory">;

class TT_Op<string mnemonic, list<Trait> traits = []>
    : Op<Triton_Dialect, mnemonic, traits>;

/// A pure operation that maps every element on its own. Shapes agree; element
/// types may differ.
class TT_MapOp<string mnemonic, list<Trait> traits = []>
    : TT_Op<mnemonic, !listconcat([Pure, Elementwise,
                                   SameOperandsAndResultShape], traits)>;

/// Result types follow from the operands and attributes by a rule written in
/// C++ (`inferReturnTypes`).
defvar TT_InfersType = InferTypeOpAdaptor;

#endif // TRITON_OP_BASE_TD
