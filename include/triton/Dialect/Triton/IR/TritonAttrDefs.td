//===- TritonAttrDefs.td - enumerations and attributes -------*- tablegen -*-===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//
//
// The numbers are part of the text: attributes that Triton leaves in the
// attribute dictionary (`padding = 1 : i32`) are printed as integers.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_ATTR_DEFS_TD
#define TRITON_ATTR_DEFS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "triton/Dialect/Triton/IR/TritonDialect.td"

class TT_Enum<string name, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, "", cases> {
  let cppNamespace = "::mlir::triton";
}
class TT_Case<string name, int value, string text>
    : I32EnumAttrCase<name, value, text>;

def TT_CacheModifierAttr : TT_Enum<"CacheModifier", [
  TT_Case<"NONE", 1, "none">, TT_Case<"CA", 2, "ca">, TT_Case<"CG", 3, "cg">,
  TT_Case<"WB", 4, "wb">, TT_Case<"CS", 5, "cs">, TT_Case<"WT", 6, "wt">,
  TT_Case<"CV", 7, "cv">]>;

def TT_EvictionPolicyAttr : TT_Enum<"EvictionPolicy", [
  TT_Case<"NORMAL", 1, "evict_normal">,
  TT_Case<"EVICT_FIRST", 2, "evict_first">,
  TT_Case<"EVICT_LAST", 3, "evict_last">]>;

def TT_PaddingOptionAttr : TT_Enum<"PaddingOption", [
  TT_Case<"PAD_ZERO", 1, "pad_zero">, TT_Case<"PAD_NAN", 2, "pad_nan">]>;

def TT_MemSemanticAttr : TT_Enum<"MemSemantic", [
  TT_Case<"RELAXED", 1, "relaxed">, TT_Case<"ACQUIRE", 2, "acquire">,
  TT_Case<"RELEASE", 3, "release">,
  TT_Case<"ACQUIRE_RELEASE", 4, "acq_rel">]>;

def TT_MemSyncScopeAttr : TT_Enum<"MemSyncScope", [
  TT_Case<"GPU", 1, "gpu">, TT_Case<"CTA", 2, "cta">,
  TT_Case<"SYSTEM", 3, "sys">]>;

def TT_AtomicRMWAttr : TT_Enum<"RMWOp", [
  TT_Case<"AND", 1, "and">, TT_Case<"OR", 2, "or">, TT_Case<"XOR", 3, "xor">,
  TT_Case<"ADD", 4, "add">, TT_Case<"FADD", 5, "fadd">,
  TT_Case<"MAX", 6, "max">, TT_Case<"MIN", 7, "min">,
  TT_Case<"UMAX", 8, "umax">, TT_Case<"UMIN", 9, "umin">,
  TT_Case<"XCHG", 10, "exch">]>;

def TT_DescriptorReduceKindAttr : TT_Enum<"DescriptorReduceKind", [
  TT_Case<"ADD", 1, "add">, TT_Case<"MIN", 2, "min">,
  TT_Case<"MAX", 3, "max">, TT_Case<"INC", 4, "inc">,
  TT_Case<"DEC", 5, "dec">, TT_Case<"AND", 6, "and">,
  TT_Case<"OR", 7, "or">, TT_Case<"XOR", 8, "xor">]>;

def TT_ProgramDim : TT_Enum<"ProgramIDDim", [
  TT_Case<"X", 0, "x">, TT_Case<"Y", 1, "y">, TT_Case<"Z", 2, "z">]>;

def TT_RoundingModeAttr : TT_Enum<"RoundingMode", [
  TT_Case<"RTZ", 0, "rtz">, TT_Case<"RTNE", 1, "rtne">]>;

def TT_PropagateNanAttr : TT_Enum<"PropagateNan", [
  TT_Case<"NONE", 0, "none">, TT_Case<"ALL", 0xFFFF, "all">]>;

def TT_InputPrecisionAttr : TT_Enum<"InputPrecision", [
  TT_Case<"TF32", 0, "tf32">, TT_Case<"TF32x3", 1, "tf32x3">,
  TT_Case<"IEEE", 2, "ieee">, TT_Case<"BF16x3", 3, "bf16x3">,
  TT_Case<"BF16x6", 4, "bf16x6">]>;

def TT_ScaleDotElemTypeAttr : TT_Enum<"ScaleDotElemType", [
  TT_Case<"E4M3", 0, "e4m3">, TT_Case<"E5M2", 1, "e5m2">,
  TT_Case<"E2M3", 2, "e2m3">, TT_Case<"E3M2", 3, "e3m2">,
  TT_Case<"E2M1", 4, "e2m1">, TT_Case<"BF16", 5, "bf16">,
  TT_Case<"FP16", 6, "fp16">]>;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def TT_CachePolicyAttr : AttrDef<Triton_Dialect, "CachePolicy"> {
  let mnemonic = "cache_policy";
  let summary = "how an access goes through the caches (Triton 3.9)";
  let parameters = (ins
    EnumParameter<TT_CacheModifierAttr>:$cache_modifier,
    EnumParameter<TT_EvictionPolicyAttr>:$eviction_policy);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // TRITON_ATTR_DEFS_TD
