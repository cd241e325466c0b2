//===- AxisMapInterface.td - along which axes --------------*- tablegen -*-===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_AXIS_MAP_INTERFACE_TD
#define TRITON_AXIS_MAP_INTERFACE_TD

include "mlir/IR/OpBase.td"

def TT_AxisMapInterface : OpInterface<"AxisMapOpInterface"> {
  let cppNamespace = "::mlir::triton";
  let description = [{
    Of operations that give tiles other axes. One that neither sums nor mixes
    axes of its one operand computes nothing: each element of a result is one of
    the operand's.
  }];
  let methods = [InterfaceMethod<
    "What becomes of the axes of an operand, in each of the results.",
    "::mlir::triton::AxisMap", "getAxisMap", (ins "unsigned":$operand)>];
}

#endif // TRITON_AXIS_MAP_INTERFACE_TD
