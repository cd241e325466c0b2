//===- TritonMapOps.td - elementwise operations --------------*- tablegen -*-===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_MAP_OPS_TD
#define TRITON_MAP_OPS_TD

include "triton/Dialect/Triton/IR/TritonOpBase.td"

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

class TT_CastOp<string mnemonic, Type from, Type to>
    : TT_MapOp<mnemonic, [SameOperandsAndResultShape]> {
  let arguments = (ins from:$src);
  let results = (outs to:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasFolder = 1;
}

def IntToPtrOp : TT_CastOp<"int_to_ptr", TT_I64Like, TT_PtrLike> {
  let summary = "a 64-bit integer as an address";
}

def PtrToIntOp : TT_CastOp<"ptr_to_int", TT_PtrLike, TT_I64Like> {
  let summary = "an address as a 64-bit integer";
}

def BitcastOp : TT_CastOp<"bitcast", TT_Type, TT_Type> {
  let summary = "the same bits as another type of the same width";
  let description = [{Unlike `arith.bitcast` this one also takes pointers.}];
  let hasVerifier = 1;
}

def FpToFpOp : TT_MapOp<"fp_to_fp"> {
  let summary = "conversion between float types with a rounding mode";
  let description = [{
    Used for 8-bit floats and wherever a rounding mode other than the default
    is asked for; everything else is `arith.extf` and `arith.truncf`.
  }];
  let arguments = (ins TT_FloatLike:$src,
                       OptionalAttr<TT_RoundingModeAttr>:$rounding);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = [{
    $src attr-dict (`,` `rounding` `=` $rounding^)? `:` type($src) `->`
    type($result)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

def ClampFOp : TT_MapOp<"clampf", [SameOperandsAndResultType]> {
  let summary = "x limited to [min, max]";
  let arguments = (ins TT_FloatLike:$x, TT_FloatLike:$min, TT_FloatLike:$max,
                       TT_PropagateNanAttr:$propagateNan);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = [{
    $x `,` $min `,` $max `,` `propagateNan` `=` $propagateNan attr-dict `:`
    type($result)
  }];
}

def PreciseSqrtOp : TT_MapOp<"precise_sqrt", [SameOperandsAndResultType]> {
  let summary = "square root, rounded to nearest even";
  let arguments = (ins TT_FloatLike:$x);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

class TT_DivisionOp<string mnemonic>
    : TT_MapOp<mnemonic, [SameOperandsAndResultType]> {
  let arguments = (ins TT_FloatLike:$x, TT_FloatLike:$y);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` type($x)";
}

def PreciseDivFOp : TT_DivisionOp<"precise_divf"> {
  let summary = "division, rounded to nearest even";
}

def ApproxDivFOp : TT_DivisionOp<"approx_divf"> {
  let summary = "the device's fast, inexact division";
}

def MulhiUIOp : TT_MapOp<"mulhiui", [Commutative, SameOperandsAndResultType]> {
  let summary = "the upper half of an unsigned product";
  let arguments = (ins TT_IntLike:$x, TT_IntLike:$y);
  let results = (outs TT_IntLike:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` type($x)";
  let hasFolder = 1;
}

def AddPtrOp : TT_MapOp<"addptr", [AllTypesMatch<["ptr", "result"]>]> {
  let summary = "a pointer moved by a number of elements";
  let arguments = (ins TT_PtrLike:$ptr, TT_IntLike:$offset);
  let results = (outs TT_PtrLike:$result);
  let assemblyFormat = [{
    $ptr `,` $offset attr-dict `:` type($result) `,` type($offset)
  }];
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Functions that are given by name, by assembly, or by a region
//===----------------------------------------------------------------------===//

def ExternElementwiseOp : TT_Op<"extern_elementwise", [
    Elementwise, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "a function of a device library, element by element";
  let arguments = (ins Variadic<TT_Type>:$srcs, StrAttr:$libname,
                       StrAttr:$libpath, StrAttr:$symbol, BoolAttr:$pure);
  let results = (outs TT_Type:$result);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, $result)
  }];
}

def ElementwiseInlineAsmOp : TT_Op<"elementwise_inline_asm", [
    Elementwise, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "inline assembly applied to groups of packed elements";
  let arguments = (ins StrAttr:$asm_string, StrAttr:$constraints,
                       BoolAttr:$pure, I32Attr:$packed_element,
                       Variadic<TT_Type>:$args);
  let results = (outs Variadic<TT_Type>:$result);
  let assemblyFormat = [{
    $asm_string attr-dict ($args^ `:` type($args))? `->` type($result)
  }];
  let hasVerifier = 1;
}

def MapElementwiseOp : TT_Op<"map_elementwise", [
    RecursiveMemoryEffects, SameOperandsAndResultShape]> {
  let summary = "a region of scalar code applied to every element";
  let description = [{
    The region takes `pack` elements of each source at a time, source by
    source, and returns `pack` elements of each result.
  }];
  let arguments = (ins Variadic<TT_Tensor>:$srcs, I32Attr:$pack);
  let results = (outs Variadic<TT_Tensor>:$result);
  let regions = (region AnyRegion:$scalarOp);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def MapElementwiseReturnOp : TT_Op<"map_elementwise.return", [
    HasParent<"MapElementwiseOp">, Pure, Terminator, ReturnLike]> {
  let summary = "ends the region of map_elementwise";
  let arguments = (ins Variadic<AnyType>:$result);
  let assemblyFormat = "attr-dict ($result^ `:` type($result))?";
}

#endif // TRITON_MAP_OPS_TD
