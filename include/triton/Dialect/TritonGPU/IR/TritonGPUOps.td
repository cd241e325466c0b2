//===- TritonGPUOps.td - the part of ttg that TTIR uses ------*- tablegen -*-===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_GPU_OPS_TD
#define TRITON_GPU_OPS_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TritonGPU_Dialect : Dialect {
  let name = "ttg";
  let cppNamespace = "::mlir::triton::gpu";
  let summary = "the few operations of Triton's GPU dialect that TTIR contains";
  let useDefaultAttributePrinterParser = 1;
}

def TTG_NoAccess : I32BitEnumAttrCaseNone<"None", "none">;
def TTG_Local : I32BitEnumAttrCaseBit<"Local", 0, "local">;
def TTG_GlobalRead : I32BitEnumAttrCaseBit<"GlobalRead", 1, "global_read">;
def TTG_GlobalWrite : I32BitEnumAttrCaseBit<"GlobalWrite", 2, "global_write">;
def TTG_TensorRead : I32BitEnumAttrCaseBit<"TensorRead", 3, "tensor_read">;
def TTG_TensorWrite : I32BitEnumAttrCaseBit<"TensorWrite", 4, "tensor_write">;
def TTG_All : I32BitEnumAttrCaseGroup<"All", [
  TTG_Local, TTG_GlobalRead, TTG_GlobalWrite, TTG_TensorRead, TTG_TensorWrite],
  "all">;

def TTG_AddrSpace : I32BitEnum<"AddrSpace", "kinds of memory accesses", [
  TTG_NoAccess, TTG_Local, TTG_GlobalRead, TTG_GlobalWrite, TTG_TensorRead,
  TTG_TensorWrite, TTG_All]> {
  let separator = "|";
  let cppNamespace = "::mlir::triton::gpu";
  let printBitEnumPrimaryGroups = 1;
}

def TTG_AddrSpaceAttr : EnumAttr<TritonGPU_Dialect, TTG_AddrSpace, "addrspace">;

def BarrierOp : Op<TritonGPU_Dialect, "barrier",
                       [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for all threads of the program, and for their accesses";
  let description = [{Triton 3.9's `tl.debug_barrier`.}];
  let arguments = (ins TTG_AddrSpaceAttr:$addrSpace);
  let assemblyFormat = "`` $addrSpace attr-dict";
}

#endif // TRITON_GPU_OPS_TD
