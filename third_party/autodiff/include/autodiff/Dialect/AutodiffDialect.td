//===- AutodiffDialect.td - The autodiff dialect ------------*- tablegen -*-===//
//
// What differentiation needs between its passes and TTIR cannot say: where a
// primal value may be saved, a value waiting for its tape, a contribution to a
// gradient whose place in memory is still open.
//
//===----------------------------------------------------------------------===//

#ifndef AUTODIFF_DIALECT
#define AUTODIFF_DIALECT

include "autodiff/Dialect/PlanOps.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "triton/Dialect/Triton/IR/AxisMapInterface.td"

def Autodiff_ResidualOp : Autodiff_Op<"residual",
    [AlwaysSpeculatable, SameOperandsAndResultType,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a primal value that a forward may save and a backward reload";
  let description = [{
    The identity. The primal and the backward derived from it carry the same
    `id`, whatever happens to the code around: it is how a value of one finds
    its counterpart in the other. `constant` says that the outputs are proved
    not to depend on it: no derivative flows through. `pinned` keeps one alive
    in the primal that only the backward uses.
  }];
  let arguments = (ins AnyType:$value, I32Attr:$id, UnitAttr:$constant,
                       UnitAttr:$pinned);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$value `id` `=` $id attr-dict `:` type($value)";
}

def Autodiff_HeldOp : Autodiff_Op<"held", [Pure, SameOperandsAndResultType]> {
  let summary = "the end of a loop that stays one";
  let description = [{
    The identity, of which nothing is known while folding: a loop that runs once
    is not taken apart. autodiff-release-loops removes it.
  }];
  let arguments = (ins AnySignlessIntegerOrIndex:$value);
  let results = (outs AnySignlessIntegerOrIndex:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Autodiff_PushOp : Autodiff_Op<"push", [MemoryEffects<[MemWrite]>]> {
  let summary = "record a primal value for the backward";
  let description = [{
    In a backward: what a recomputed loop carries at the start of an iteration.
    In a primal: what only this run of the forward knows, because the kernel
    changes the memory that it comes from; the augmented forward records it.
  }];
  let arguments = (ins AnyType:$value, AnySignlessInteger:$iteration,
                       I32Attr:$tape, OptionalAttr<Autodiff_ExprAttr>:$entries);
  let assemblyFormat = [{
    $value `at` $iteration `tape` `=` $tape (`of` $entries^)? attr-dict
    `:` type($value) `,` type($iteration)
  }];
}

def Autodiff_SizeOp : Autodiff_Op<"size", [Pure]> {
  let summary = "an integer that the host evaluates when the kernel is launched";
  let description = [{
    autodiff-sizes makes it an argument.
  }];
  let arguments = (ins Autodiff_ExprAttr:$expression);
  let results = (outs I64:$result);
  let assemblyFormat = "$expression attr-dict";
  let hasVerifier = 1;
}

def Autodiff_ProgramsOp : Autodiff_Op<"programs", [Pure]> {
  let summary = "the place of a program in a box";
  let description = [{
    The launch runs a program for every place. The first number runs fastest.
  }];
  let arguments = (ins Autodiff_ExprArrayAttr:$extents);
  let results = (outs Variadic<I32>:$places);
  let assemblyFormat = "$extents attr-dict `:` type($places)";
  let hasVerifier = 1;
}

def Autodiff_PopOp : Autodiff_Op<"pop", [MemoryEffects<[MemRead]>]> {
  let summary = "the value that was pushed under this number";
  let description = [{
    It stays behind the pushes of its tape, which may be in the same kernel.
  }];
  let arguments = (ins AnySignlessInteger:$iteration, I32Attr:$tape);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $iteration `tape` `=` $tape attr-dict `:` type($iteration) `->` type($result)
  }];
}

def Autodiff_UnavailableOp : Autodiff_Op<"unavailable", [Pure]> {
  let summary = "a primal value that a counting kernel cannot compute";
  let description = [{
    Stands for the result of an effect, or for what the primal reads of its own
    stores. It is an error if a count still depends on one once dead code is
    gone.
  }];
  let results = (outs AnyType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Autodiff_UpstreamOp : Autodiff_Op<"upstream",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "take the cotangent of what was stored at a primal address";
  let description = [{
    The adjoint of a store: the cotangent stored there is read and, since the
    store hid what was there before, cleared. `site` is the store's number in
    the primal. With `keep` the content stays (the adjoint of an atomic add);
    with `read` it has been read elsewhere, and is only to be cleared.
    Lanes that are masked off give zero.
  }];
  let arguments = (ins AnyType:$ptr, Optional<AnyType>:$mask,
                       I32Attr:$argument, I32Attr:$site, UnitAttr:$keep,
                       UnitAttr:$read);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $ptr (`mask` $mask^ `:` type($mask))? attr-dict
    `:` type($ptr) (`->` type($result)^)?
  }];
}

def Autodiff_AccumulateOp : Autodiff_Op<"accumulate",
    [MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "add a contribution to the gradient at a primal address";
  let description = [{
    The adjoint of a load. How contributions meet (store, atomic) is
    decided later. `site` is the load's number in the primal. `whole` says that
    this is all there is at its addresses, given a check; with `partial`, that
    it is one of several sums of which this holds, by its number among
    `partials`. A `remainder` is added to what kernels before have stored.
  }];
  let arguments = (ins AnyType:$ptr, AnyType:$value, Optional<AnyType>:$mask,
                       Optional<I32>:$partial, I32Attr:$argument,
                       I32Attr:$site, OptionalAttr<Autodiff_CheckAttr>:$whole,
                       OptionalAttr<Autodiff_ExprAttr>:$partials, UnitAttr:$remainder);
  let results = (outs);
  let assemblyFormat = [{
    $ptr `,` $value (`mask` $mask^ `:` type($mask))?
    (`partial` $partial^ `of` $partials)? (`whole` $whole^)?
    (`remainder` $remainder^)? attr-dict `:` type($ptr) `,` type($value)
  }];
  let builders = [
    OpBuilder<(ins "Value":$ptr, "Value":$value, "Value":$mask,
                   "unsigned":$argument, "unsigned":$site), [{
      build($_builder, $_state, ptr, value, mask, Value(), argument, site,
            CheckAttr(), ExprAttr(), /*remainder=*/false);
    }]>
  ];
}

def Autodiff_SwapOp : Autodiff_Op<"swap",
    [Pure, SameOperandsAndResultType,
     DeclareOpInterfaceMethods<TT_AxisMapInterface, ["takesElements"]>]> {
  let summary = "swap the two elements along an axis of size 2";
  let description = [{
    What `tl.sort`, `tl.topk` and `tl.flip` are made of. They do it with bits:
    the exclusive or of an element with that of both is the other one.
  }];
  let arguments = (ins AnyRankedTensor:$src, I32Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$src `axis` `=` $axis attr-dict `:` type($src)";
  let hasVerifier = 1;
}

def Autodiff_StopGradientOp : Autodiff_Op<"stop_gradient",
    [Pure, SameOperandsAndResultType]> {
  let summary = "a value that no derivative flows through";
  let arguments = (ins AnyType:$value);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Autodiff_OnceOp : Autodiff_Op<"once",
    [Pure, SameOperandsAndResultType]> {
  let summary = "a value of a gradient that is not differentiated again";
  let description = [{
    A function with a derivative of its own has made it. Its first derivative is
    what the user says, which says nothing of the second.
  }];
  let arguments = (ins AnyType:$value);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Autodiff_CustomVjpOp : Autodiff_Op<"custom_vjp",
    [Pure, AttrSizedOperandSegments, SingleBlock]> {
  let summary = "values whose derivative the user defines";
  let description = [{
    The results are the `values`, as functions of the `inputs` whose pullback is
    the region: it gets the cotangents of the results, may use any value from
    above, and yields one cotangent for each input. No derivative flows through
    `values` themselves. `rule` names what the user wrote, for errors.
  }];
  let arguments = (ins Variadic<AnyType>:$values, Variadic<AnyType>:$inputs,
                       StrAttr:$rule);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$pullback);
  let assemblyFormat = [{
    $rule $values `:` type($values) `of` $inputs `:` type($inputs)
    `->` type($results) $pullback attr-dict
  }];
  let hasVerifier = 1;
}

def Autodiff_YieldOp : Autodiff_Op<"yield",
    [Pure, Terminator, HasParent<"CustomVjpOp">]> {
  let summary = "the cotangents of a custom_vjp's inputs";
  let arguments = (ins Variadic<AnyType>:$gradients);
  let assemblyFormat = "($gradients^ `:` type($gradients))? attr-dict";
}

#endif // AUTODIFF_DIALECT
