//===- TritonTileOps.td - operations on whole tiles ----------*- tablegen -*-===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_TILE_OPS_TD
#define TRITON_TILE_OPS_TD

include "triton/Dialect/Triton/IR/AxisMapInterface.td"
include "triton/Dialect/Triton/IR/TritonOpBase.td"

/// An operation that gives tiles other axes says which; some say more.
class TT_TileOp<string mnemonic, list<Trait> traits = [],
                list<string> answers = []>
    : TT_Op<mnemonic, !listconcat(
          [DeclareOpInterfaceMethods<TT_AxisMapInterface, answers>], traits)>;

/// Its elements are those of its operands.
class TT_MoveOp<string mnemonic, list<Trait> traits = [],
                list<string> answers = []>
    : TT_TileOp<mnemonic, traits, !listconcat(["takesElements"], answers)> {
  let extraClassDefinition = [{
    bool $cppClass::takesElements(unsigned operand) { return true; }
  }];
}

class TT_ReshapingOp<string mnemonic, list<Trait> traits = [],
                     list<string> answers = []>
    : TT_MoveOp<mnemonic, !listconcat([Pure, SameOperandsAndResultElementType],
                                      traits), answers> {
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
}

def SplatOp : TT_ReshapingOp<"splat"> {
  let summary = "a scalar in every element of a tensor";
  let arguments = (ins TT_Scalar:$src);
  let results = (outs TT_Tensor:$result);
  let hasFolder = 1;
}

def UnsplatOp : TT_MoveOp<"unsplat", [Pure, TT_InfersType]> {
  let summary = "the one element of a tensor, as a scalar";
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Scalar:$result);
  let assemblyFormat = "$src attr-dict `:` type($src)";
  let hasFolder = 1;
}

def ExpandDimsOp : TT_ReshapingOp<"expand_dims", [TT_InfersType],
                                  ["getAttrsBehindAxis"]> {
  let summary = "a new dimension of size one at `axis`";
  let arguments = (ins TT_Tensor:$src, I32Attr:$axis);
  let results = (outs TT_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def BroadcastOp : TT_ReshapingOp<"broadcast", [], ["getAttrsBehindAxis"]> {
  let summary = "dimensions of size one repeated";
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def ReshapeOp : TT_MoveOp<"reshape",
                          [Pure, SameOperandsAndResultElementType],
                          ["getAttrsBehindAxis"]> {
  let summary = "the same elements under another shape";
  let description = [{
    In row-major order, unless `allow_reorder` lets the compiler permute the
    elements. `efficient_layout` asks it to keep the result's layout.
  }];
  let arguments = (ins TT_Tensor:$src, UnitAttr:$allow_reorder,
                       UnitAttr:$efficient_layout);
  let results = (outs TT_Tensor:$result);
  let builders = [
    OpBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Value":$src,
                   CArg<"bool", "false">:$allowReorder)>
  ];
  let assemblyFormat = [{
    $src (`allow_reorder` $allow_reorder^)?
    (`efficient_layout` $efficient_layout^)? attr-dict `:` type($src) `->`
    type($result)
  }];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def TransOp : TT_ReshapingOp<"trans", [TT_InfersType],
                             ["getAttrsBehindAxis"]> {
  let summary = "dimensions permuted";
  let description = [{Dimension `i` of the result is `order[i]` of the source.}];
  let arguments = (ins TT_Tensor:$src, DenseI32ArrayAttr:$order);
  let results = (outs TT_Tensor:$result);
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let hasVerifier = 1;
}

def CatOp : TT_MoveOp<"cat", [
    NoMemoryEffect, SameTypeOperands, SameOperandsAndResultElementType]> {
  let summary = "two tensors as one, in no defined order of elements";
  let arguments = (ins TT_Tensor:$lhs, TT_Tensor:$rhs);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

def JoinOp : TT_MoveOp<"join", [
    Pure, SameTypeOperands, SameOperandsAndResultElementType, TT_InfersType]> {
  let summary = "two tensors along a new last dimension of size two";
  let arguments = (ins TT_Tensor:$lhs, TT_Tensor:$rhs);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)
  }];
}

def SplitOp : TT_MoveOp<"split", [
    Pure, TT_InfersType, AllTypesMatch<["outLHS", "outRHS"]>]> {
  let summary = "the two halves of a last dimension of size two";
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Tensor:$outLHS, TT_Tensor:$outRHS);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($outLHS)";
  let hasFolder = 1;
}

def MakeRangeOp : TT_Op<"make_range", [Pure]> {
  let summary = "the integers start to end-1";
  let arguments = (ins I32Attr:$start, I32Attr:$end);
  let results = (outs TT_I32Tensor:$result);
  let builders = [OpBuilder<(ins "int32_t":$start, "int32_t":$end)>];
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def GatherOp : TT_TileOp<"gather", [Pure, TT_InfersType], ["takesElements"]> {
  let summary = "elements picked along one axis by index";
  let arguments = (ins TT_Tensor:$src, TT_IntTensor:$indices, I32Attr:$axis,
                       UnitAttr:$efficient_layout);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $src `[` $indices `]` attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HistogramOp : TT_TileOp<"histogram", [
    Pure, TypesMatchWith<"mask is i1 of the source's shape", "src", "mask",
                         "::mlir::triton::getMaskType($_self)",
                         "!this->getMask() || std::equal_to<>()">]> {
  let summary = "how often each of 0 to n-1 occurs";
  let arguments = (ins TT_IntTensor:$src, Optional<TT_I1Tensor>:$mask);
  let results = (outs TT_IntTensor:$result);
  let assemblyFormat = [{
    $src (`,` $mask^)? attr-dict `:` type($src) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

def DotOp : TT_TileOp<"dot", [
    Pure, AllTypesMatch<["c", "d"]>]> {
  let summary = "a matrix product added to an accumulator: d = a b + c";
  let description = [{Of two matrices, or of two equally long lists of them.}];
  let arguments = (ins TT_FpIntTensor:$a, TT_FpIntTensor:$b, TT_FpIntTensor:$c,
    DefaultValuedAttr<TT_InputPrecisionAttr,
                      "::mlir::triton::InputPrecision::IEEE">:$inputPrecision,
    DefaultValuedAttr<I32Attr, "0">:$maxNumImpreciseAcc);
  let results = (outs TT_FpIntTensor:$d);
  let assemblyFormat = [{
    $a `,` $b `,` $c (`,` `inputPrecision` `=` $inputPrecision^)? attr-dict
    `:` type($a) `*` type($b) `->` type($d)
  }];
  let hasVerifier = 1;
}

def DotScaledOp : TT_TileOp<"dot_scaled", [
    Pure, AttrSizedOperandSegments, AllTypesMatch<["c", "d"]>]> {
  let summary = "a matrix product of operands with microscaling factors";
  let arguments = (ins TT_FpIntTensor:$a, TT_FpIntTensor:$b, TT_FloatTensor:$c,
    Optional<TT_FpIntTensor>:$a_scale, Optional<TT_FpIntTensor>:$b_scale,
    TT_ScaleDotElemTypeAttr:$a_elem_type, TT_ScaleDotElemTypeAttr:$b_elem_type,
    BoolAttr:$fastMath,
    DefaultValuedAttr<BoolAttr, "true">:$lhs_k_pack,
    DefaultValuedAttr<BoolAttr, "true">:$rhs_k_pack);
  let results = (outs TT_FloatTensor:$d);
  let assemblyFormat = [{
    $a (`scale` $a_scale^)? `,` $b (`scale` $b_scale^)? `,` $c
    `lhs` `=` $a_elem_type `rhs` `=` $b_elem_type attr-dict
    `:` type($a) (`,` type($a_scale)^)? `*` type($b) (`,` type($b_scale)^)?
    `->` type($d)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reductions and scans
//===----------------------------------------------------------------------===//

/// Both combine tuples of tensors along one axis with a region that takes two
/// tuples of elements and returns one.
class TT_CombiningOp<string mnemonic>
    : TT_TileOp<mnemonic, [SingleBlock, RecursiveMemoryEffects,
                           RecursivelySpeculatable, TT_InfersType],
                ["getAttrsBehindAxis"]> {
  let regions = (region SizedRegion<1>:$combineOp);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::RankedTensorType> getInputTypes();
    ::llvm::SmallVector<::mlir::Type> getElementTypes();
    /// The number of tensors combined.
    unsigned getNumOperands() { return this->getOperands().size(); }
    /// The one operation that the region consists of beside its terminator,
    /// applied to the two block arguments; else null.
    ::mlir::Operation *getSingleCombiner();
  }];
}

def ReduceOp : TT_CombiningOp<"reduce"> {
  let summary = "elements along an axis combined into one";
  let arguments = (ins Variadic<TT_Tensor>:$srcs, I32Attr:$axis);
  let results = (outs Variadic<TT_Type>:$result);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$srcs, "int":$axis)>];
}

def ReduceReturnOp : TT_Op<"reduce.return", [
    HasParent<"ReduceOp">, Pure, Terminator, ReturnLike]> {
  let summary = "ends the region of reduce";
  let arguments = (ins Variadic<AnyType>:$result);
  let assemblyFormat = "$result attr-dict `:` type($result)";
}

def ScanOp : TT_CombiningOp<"scan"> {
  let summary = "all the partial reductions along an axis";
  let arguments = (ins Variadic<TT_Tensor>:$srcs, I32Attr:$axis,
                       BoolAttr:$reverse);
  let results = (outs Variadic<TT_Tensor>:$result);
  let builders = [
    OpBuilder<(ins "::mlir::ValueRange":$srcs, "int":$axis, "bool":$reverse)>
  ];
}

def ScanReturnOp : TT_Op<"scan.return", [
    HasParent<"ScanOp">, Pure, Terminator, ReturnLike]> {
  let summary = "ends the region of scan";
  let arguments = (ins Variadic<AnyType>:$result);
  let assemblyFormat = "$result attr-dict `:` type($result)";
}

#endif // TRITON_TILE_OPS_TD
