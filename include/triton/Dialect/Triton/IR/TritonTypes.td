//===- TritonTypes.td - pointers, descriptors, constraints ---*- tablegen -*-===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_TYPES_TD
#define TRITON_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "triton/Dialect/Triton/IR/TritonDialect.td"

class TT_TypeDef<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Triton_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def TT_PtrType : TT_TypeDef<"Pointer", "ptr"> {
  let summary = "a pointer to a scalar, or (block pointers) to a tensor";
  let description = [{
    `!tt.ptr<f32>`, or `!tt.ptr<f32, 3>` where the address space is not the
    global one (1). Triton 3.9 writes `!tt.ptr<f32, "constant">` (4) for
    arguments that are only read.
  }];
  let parameters = (ins "::mlir::Type":$pointeeType, "int":$addressSpace);
  let builders = [
    TypeBuilderWithInferredContext<(ins "::mlir::Type":$pointeeType,
                                        CArg<"int", "1">:$addressSpace), [{
      return $_get(pointeeType.getContext(), pointeeType, addressSpace);
    }]>
  ];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int globalAddressSpace = 1;
    static constexpr int constantAddressSpace = 4;
  }];
}

def TT_TensorDescType : TT_TypeDef<"TensorDesc", "tensordesc", []> {
  let summary = "a descriptor of a tensor in global memory, accessed by blocks";
  let description = [{
    `!tt.tensordesc<tensor<64x64xf16>>`, and the shorter
    `!tt.tensordesc<64x64xf16>` of newer Tritons; a type is printed in the
    form in which it was parsed.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$blockType, "bool":$brief);
  let builders = [
    TypeBuilderWithInferredContext<(ins "::mlir::RankedTensorType":$blockType,
                                        CArg<"bool", "false">:$brief), [{
      return $_get(blockType.getContext(), blockType, brief);
    }]>
  ];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The block's type; the signedness that descriptors of integers carry in
    /// their element type is dropped.
    ::mlir::RankedTensorType getSignlessBlockType() const;
  }];
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

def TT_Float : AnyTypeOf<[F8E4M3FNUZ, F8E4M3FN, F8E4M3B11FNUZ, F8E5M2,
                          F8E5M2FNUZ, F16, BF16, F32, F64],
                         "floating-point">;
def TT_Int : AnyTypeOf<[I1, I8, I16, I32, I64], "integer">;
def TT_Ptr : DialectType<Triton_Dialect,
    CPred<"::llvm::isa<::mlir::triton::PointerType>($_self)">, "pointer",
    "::mlir::triton::PointerType">;
def TT_TensorPtr : DialectType<Triton_Dialect,
    And<[CPred<"::llvm::isa<::mlir::triton::PointerType>($_self)">,
         CPred<"::llvm::isa<::mlir::RankedTensorType>(::llvm::cast<"
               "::mlir::triton::PointerType>($_self).getPointeeType())">]>,
    "pointer to a tensor", "::mlir::triton::PointerType">;
def TT_ScalarPtr : DialectType<Triton_Dialect,
    And<[CPred<"::llvm::isa<::mlir::triton::PointerType>($_self)">,
         CPred<"!::llvm::isa<::mlir::RankedTensorType>(::llvm::cast<"
               "::mlir::triton::PointerType>($_self).getPointeeType())">]>,
    "pointer to a scalar", "::mlir::triton::PointerType">;
def TT_TensorDesc : DialectType<Triton_Dialect,
    CPred<"::llvm::isa<::mlir::triton::TensorDescType>($_self)">,
    "tensor descriptor", "::mlir::triton::TensorDescType">;

class TT_TensorOf<list<Type> elements> : StaticShapeTensorOf<elements>;
def TT_FloatTensor : TT_TensorOf<[TT_Float]>;
def TT_IntTensor : TT_TensorOf<[TT_Int]>;
def TT_I1Tensor : TT_TensorOf<[I1]>;
def TT_I32Tensor : TT_TensorOf<[I32]>;
def TT_I64Tensor : TT_TensorOf<[I64]>;
def TT_PtrTensor : TT_TensorOf<[TT_ScalarPtr]>;
def TT_FpIntTensor : TT_TensorOf<[TT_Float, TT_Int]>;
def TT_Tensor : TT_TensorOf<[TT_Float, TT_Int, TT_ScalarPtr]>;

def TT_FloatLike : AnyTypeOf<[TT_Float, TT_FloatTensor],
                             "a float or a tensor of floats">;
def TT_IntLike : AnyTypeOf<[TT_Int, TT_IntTensor],
                           "an integer or a tensor of integers">;
def TT_BoolLike : AnyTypeOf<[I1, TT_I1Tensor], "i1 or a tensor of i1">;
def TT_I64Like : AnyTypeOf<[I64, TT_I64Tensor], "i64 or a tensor of i64">;
def TT_PtrLike : AnyTypeOf<[TT_ScalarPtr, TT_PtrTensor],
                           "a pointer or a tensor of pointers">;
def TT_AnyPtr : AnyTypeOf<[TT_ScalarPtr, TT_PtrTensor, TT_TensorPtr],
                          "a pointer, a tensor of pointers or a block pointer">;
def TT_Scalar : AnyTypeOf<[TT_Float, TT_Int, TT_ScalarPtr],
                          "a float, an integer or a pointer">;
def TT_Type : AnyTypeOf<[TT_Scalar, TT_Tensor, TT_TensorPtr, TT_TensorDesc],
                        "a scalar, a tensor, a block pointer or a descriptor">;

#endif // TRITON_TYPES_TD
