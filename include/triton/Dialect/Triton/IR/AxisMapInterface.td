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
    Of operations that give tiles other axes. What asks which operations move
    elements asks them: a new one needs no place in any list.
  }];
  let methods = [
    InterfaceMethod<
      "What becomes of the axes of an operand, in each of the results.",
      "::mlir::triton::AxisMap", "getAxisMap", (ins "unsigned":$operand)>,
    InterfaceMethod<[{
        Whether elements of this operand, as they are, become elements of the
        results: those of a gather's source, not those of its index.
      }],
      "bool", "takesElements", (ins "unsigned":$operand), "", "return false;">,
    InterfaceMethod<[{
        Its attributes where operands and results have one more axis, in front,
        at each position of which it does what it does: the order of a
        transposition [1, 0] is [0, 2, 1] then. Null if it has no such form.
      }],
      "::mlir::DictionaryAttr", "getAttrsBehindAxis", (ins), "", "return {};">];
}

#endif // TRITON_AXIS_MAP_INTERFACE_TD
