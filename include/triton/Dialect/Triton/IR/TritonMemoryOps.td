//===- TritonMemoryOps.td - loads, stores, atomics, descriptors -*- tablegen -*-//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_MEMORY_OPS_TD
#define TRITON_MEMORY_OPS_TD

include "triton/Dialect/Triton/IR/TritonOpBase.td"

defvar TT_NoCacheModifier = "::mlir::triton::CacheModifier::NONE";
defvar TT_NormalEviction = "::mlir::triton::EvictionPolicy::NORMAL";

/// An operand or result of the type that the pointer points to.
class TT_PointeeMatches<string operand>
    : TypesMatchWith<operand # " has the pointer's element type", "ptr",
                     operand, "::mlir::triton::getPointeeType($_self)">;

defvar TT_OtherOfMask = PredOpTrait<"other is given with a mask",
    CPred<"!this->getOther() || this->getMask()">>;

// The comparators of optional operands: absent ones match.
defvar TT_OptionalOther =
    TypesMatchWith<"other has the pointer's element type", "ptr", "other",
                   "::mlir::triton::getPointeeType($_self)",
                   "!this->getOther() || std::equal_to<>()">;
defvar TT_OptionalMask =
    TypesMatchWith<"mask is i1 of the pointer's shape", "ptr", "mask",
                   "::mlir::triton::getMaskType($_self)",
                   "!this->getMask() || std::equal_to<>()">;

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

def LoadOp : TT_Op<"load", [
    AttrSizedOperandSegments, TT_PointeeMatches<"result">,
    TT_OptionalMask, TT_OptionalOther, TT_OtherOfMask,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "load through a pointer, or through every pointer of a tensor";
  let description = [{
    Where `mask` is false nothing is read and the result is `other`
    (unspecified if there is none). A volatile load is kept even if unused.

    Tritons up to 3.8 print the caching hints as `cacheModifier` and
    `evictionPolicy`, 3.9 as `cachePolicy`. Either is kept as it was given.
  }];
  let arguments = (ins
    TT_AnyPtr:$ptr,
    Optional<TT_BoolLike>:$mask, Optional<TT_Type>:$other,
    DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$boundaryCheck,
    OptionalAttr<TT_PaddingOptionAttr>:$padding,
    DefaultValuedAttr<TT_CacheModifierAttr, TT_NoCacheModifier>:$cache,
    DefaultValuedAttr<TT_EvictionPolicyAttr, TT_NormalEviction>:$evict,
    DefaultValuedAttr<BoolAttr, "false">:$isVolatile,
    OptionalAttr<AnyAttr>:$cachePolicy);
  let results = (outs TT_Type:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$ptr,
                   CArg<"::mlir::Value", "{}">:$mask,
                   CArg<"::mlir::Value", "{}">:$other)>,
    OpBuilder<(ins "::mlir::Value":$ptr, "::mlir::Value":$mask,
                   "::mlir::Value":$other, "CacheModifier":$cache,
                   "EvictionPolicy":$evict, "bool":$isVolatile)>
  ];
  let assemblyFormat = [{
    $ptr (`,` $mask^)? (`,` $other^)?
    oilist(`cacheModifier` `=` $cache | `evictionPolicy` `=` $evict)
    attr-dict `:` type($ptr)
  }];
  let hasCanonicalizer = 1;
}

def StoreOp : TT_Op<"store", [
    TT_PointeeMatches<"value">, TT_OptionalMask,
    MemoryEffects<[MemWrite<GlobalMemory>]>]> {
  let summary = "store through a pointer, or through every pointer of a tensor";
  let arguments = (ins
    TT_AnyPtr:$ptr, TT_Type:$value,
    Optional<TT_BoolLike>:$mask,
    DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$boundaryCheck,
    DefaultValuedAttr<TT_CacheModifierAttr, TT_NoCacheModifier>:$cache,
    DefaultValuedAttr<TT_EvictionPolicyAttr, TT_NormalEviction>:$evict,
    OptionalAttr<AnyAttr>:$cachePolicy);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$ptr, "::mlir::Value":$value,
                   CArg<"::mlir::Value", "{}">:$mask)>,
    OpBuilder<(ins "::mlir::Value":$ptr, "::mlir::Value":$value,
                   "::mlir::Value":$mask, "CacheModifier":$cache,
                   "EvictionPolicy":$evict)>
  ];
  let assemblyFormat = [{
    $ptr `,` $value (`,` $mask^)?
    oilist(`cacheModifier` `=` $cache | `evictionPolicy` `=` $evict)
    attr-dict `:` type($ptr)
  }];
  let hasCanonicalizer = 1;
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

class TT_AtomicOp<string mnemonic, list<Trait> traits = []>
    : TT_Op<mnemonic, !listconcat(
        [MemoryEffects<[MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>],
        traits)>;

def AtomicRMWOp : TT_AtomicOp<"atomic_rmw", [
    TT_PointeeMatches<"val">, TT_PointeeMatches<"result">,
    TT_OptionalMask]> {
  let summary = "read, modify and write in one step; gives the old value";
  let arguments = (ins TT_AtomicRMWAttr:$atomic_rmw_op, TT_PtrLike:$ptr,
                       TT_Type:$val, Optional<TT_BoolLike>:$mask,
                       TT_MemSemanticAttr:$sem, TT_MemSyncScopeAttr:$scope);
  let results = (outs TT_Type:$result);
  let assemblyFormat = [{
    $atomic_rmw_op `,` $sem `,` $scope `,` $ptr `,` $val (`,` $mask^)?
    attr-dict `:` functional-type(operands, $result)
  }];
}

def AtomicCASOp : TT_AtomicOp<"atomic_cas", [
    TT_PointeeMatches<"cmp">, TT_PointeeMatches<"val">,
    TT_PointeeMatches<"result">]> {
  let summary = "val is written where the memory equals cmp; gives the old value";
  let arguments = (ins TT_PtrLike:$ptr, TT_Type:$cmp, TT_Type:$val,
                       TT_MemSemanticAttr:$sem, TT_MemSyncScopeAttr:$scope);
  let results = (outs TT_Type:$result);
  let assemblyFormat = [{
    $sem `,` $scope `,` $ptr `,` $cmp `,` $val attr-dict `:`
    functional-type(operands, $result)
  }];
}

def AtomicLoadOp : TT_AtomicOp<"atomic_load", [
    TT_PointeeMatches<"result">, TT_OptionalMask]> {
  let summary = "an atomic load";
  let arguments = (ins TT_PtrLike:$ptr, Optional<TT_BoolLike>:$mask,
                       TT_MemSemanticAttr:$sem, TT_MemSyncScopeAttr:$scope);
  let results = (outs TT_Type:$result);
  let assemblyFormat = [{
    $sem `,` $scope `,` $ptr (`,` $mask^)? attr-dict `:`
    functional-type(operands, $result)
  }];
}

def AtomicStoreOp : TT_AtomicOp<"atomic_store", [
    TT_PointeeMatches<"val">, TT_OptionalMask]> {
  let summary = "an atomic store";
  let arguments = (ins TT_PtrLike:$ptr, TT_Type:$val,
                       Optional<TT_BoolLike>:$mask, TT_MemSemanticAttr:$sem,
                       TT_MemSyncScopeAttr:$scope);
  let assemblyFormat = [{
    $sem `,` $scope `,` $ptr `,` $val (`,` $mask^)? attr-dict `:` type($ptr)
  }];
}

def AtomicPollOp : TT_AtomicOp<"atomic_poll", [
    TT_PointeeMatches<"expected">]> {
  let summary = "wait until the memory has a value";
  let arguments = (ins TT_PtrLike:$ptr, TT_IntLike:$expected,
                       Optional<I64>:$timeout, TT_MemSemanticAttr:$sem,
                       TT_MemSyncScopeAttr:$scope);
  let results = (outs TT_BoolLike:$result);
  let assemblyFormat = [{
    $sem `,` $scope `,` $ptr `,` $expected (`timeout` $timeout^)?
    attr-dict `:` type($ptr) `,` type($expected) `->` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Block pointers
//===----------------------------------------------------------------------===//

def MakeTensorPtrOp : TT_Op<"make_tensor_ptr", [
    Pure, SameVariadicOperandSize,
    TypesMatchWith<"the base points to the block's element type", "result",
                   "base", "::mlir::triton::getBasePointerType($_self)">]> {
  let summary = "a pointer to a block of a strided tensor";
  let arguments = (ins TT_ScalarPtr:$base, Variadic<I64>:$shape,
                       Variadic<I64>:$strides, Variadic<I32>:$offsets,
                       DenseI32ArrayAttr:$order);
  let results = (outs TT_TensorPtr:$result);
  let assemblyFormat = [{
    $base `,` `[` $shape `]` `,` `[` $strides `]` `,` `[` $offsets `]`
    attr-dict `:` type($result)
  }];
}

def AdvanceOp : TT_Op<"advance", [Pure, AllTypesMatch<["ptr", "result"]>]> {
  let summary = "a block pointer moved by offsets";
  let arguments = (ins TT_TensorPtr:$ptr, Variadic<I32>:$offsets);
  let results = (outs TT_TensorPtr:$result);
  let assemblyFormat = "$ptr `,` `[` $offsets `]` attr-dict `:` type($result)";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Tensor descriptors
//===----------------------------------------------------------------------===//

def MakeTensorDescOp : TT_Op<"make_tensor_descriptor", [
    Pure, SameVariadicOperandSize]> {
  let summary = "a descriptor of a strided tensor, accessed by blocks";
  let arguments = (ins TT_ScalarPtr:$base, Variadic<I32>:$shape,
                       Variadic<I64>:$strides,
                       DefaultValuedAttr<TT_PaddingOptionAttr,
                         "::mlir::triton::PaddingOption::PAD_ZERO">:$padding);
  let results = (outs TT_TensorDesc:$result);
  let assemblyFormat = [{
    $base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` type($base)
    `,` type($result)
  }];
  let hasVerifier = 1;
}

def DescriptorLoadOp : TT_Op<"descriptor_load", [
    MemoryEffects<[MemRead<GlobalMemory>]>]> {
  let summary = "load a block";
  let arguments = (ins TT_TensorDesc:$desc, Variadic<I32>:$indices,
    DefaultValuedAttr<TT_CacheModifierAttr, TT_NoCacheModifier>:$cache,
    DefaultValuedAttr<TT_EvictionPolicyAttr, TT_NormalEviction>:$evict,
    OptionalAttr<AnyAttr>:$cachePolicy);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $desc `[` $indices `]`
    oilist(`cacheModifier` `=` $cache | `evictionPolicy` `=` $evict)
    attr-dict `:` qualified(type($desc)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def DescriptorStoreOp : TT_Op<"descriptor_store", [
    MemoryEffects<[MemWrite<GlobalMemory>]>]> {
  let summary = "store a block";
  let arguments = (ins TT_TensorDesc:$desc, TT_Tensor:$src,
                       Variadic<I32>:$indices);
  let assemblyFormat = [{
    $desc `[` $indices `]` `,` $src attr-dict `:` qualified(type($desc)) `,`
    type($src)
  }];
  let hasVerifier = 1;
}

def DescriptorReduceOp : TT_Op<"descriptor_reduce", [
    MemoryEffects<[MemRead<GlobalMemory>, MemWrite<GlobalMemory>]>]> {
  let summary = "combine a block with the one in memory, atomically";
  let arguments = (ins TT_DescriptorReduceKindAttr:$kind, TT_TensorDesc:$desc,
                       TT_Tensor:$src, Variadic<I32>:$indices);
  let assemblyFormat = [{
    $kind `,` $desc `[` $indices `]` `,` $src attr-dict `:`
    qualified(type($desc)) `,` type($src)
  }];
  let hasVerifier = 1;
}

def DescriptorGatherOp : TT_Op<"descriptor_gather", [
    MemoryEffects<[MemRead<GlobalMemory>]>]> {
  let summary = "load the rows `x_offsets` from column `y_offset` on";
  let arguments = (ins TT_TensorDesc:$desc, TT_I32Tensor:$x_offsets,
                       I32:$y_offset);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $desc `[` $x_offsets `,` $y_offset `]` attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def DescriptorScatterOp : TT_Op<"descriptor_scatter", [
    MemoryEffects<[MemWrite<GlobalMemory>]>]> {
  let summary = "store the rows `x_offsets` from column `y_offset` on";
  let arguments = (ins TT_TensorDesc:$desc, TT_I32Tensor:$x_offsets,
                       I32:$y_offset, TT_Tensor:$src);
  let assemblyFormat = [{
    $desc `[` $x_offsets `,` $y_offset `]` `,` $src attr-dict `:`
    type(operands)
  }];
  let hasVerifier = 1;
}

#endif // TRITON_MEMORY_OPS_TD
