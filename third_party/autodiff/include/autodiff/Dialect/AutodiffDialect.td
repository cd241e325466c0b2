//===- AutodiffDialect.td - The autodiff dialect ------------*- tablegen -*-===//
//
// What passes of differentiation have to say to each other, and TTIR cannot:
// where a value of the forward may be saved, a value that waits for its tape (a
// buffer with a value of each iteration), a contribution to a gradient that is
// not yet a store or an atomic.
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
  let summary = "a forward value that may be saved for the backward";
  let description = [{
    The identity. The forward and the backward derived from it have the same
    `id`, whatever happens to the code around: so a value of one finds its
    counterpart in the other. `constant` says that outputs are proved not to
    depend on it: no derivative flows through it. `pinned` keeps it alive in the
    forward, although only the backward uses it.
  }];
  let arguments = (ins AnyType:$value, I32Attr:$id, UnitAttr:$constant,
                       UnitAttr:$pinned);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$value `id` `=` $id attr-dict `:` type($value)";
}

def Autodiff_HeldOp : Autodiff_Op<"held", [Pure, SameOperandsAndResultType]> {
  let summary = "the end of a loop that must not be unrolled";
  let description = [{
    The identity, which does not fold: so a loop that runs once stays a loop.
    autodiff-release-loops removes it.
  }];
  let arguments = (ins AnySignlessIntegerOrIndex:$value);
  let results = (outs AnySignlessIntegerOrIndex:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Autodiff_PushOp : Autodiff_Op<"push", [MemoryEffects<[MemWrite]>]> {
  let summary = "record a forward value for the backward";
  let description = [{
    In a backward: a value that a recomputed loop carries, at the start of an
    iteration. In a forward: a value that cannot be computed again, because the
    kernel changes the memory that it comes from. The augmented forward records
    it.
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
    autodiff-pass-sizes makes it an argument of the kernel.
  }];
  let arguments = (ins Autodiff_ExprAttr:$expression);
  let results = (outs I64:$result);
  let assemblyFormat = "$expression attr-dict";
  let hasVerifier = 1;
}

def Autodiff_ProgramsOp : Autodiff_Op<"programs", [Pure]> {
  let summary = "the place of a program in a box";
  let description = [{
    The launch runs a program for every combination of numbers below the
    extents. The first number runs fastest.
  }];
  let arguments = (ins Autodiff_ExprArrayAttr:$extents);
  let results = (outs Variadic<I32>:$places);
  let assemblyFormat = "$extents attr-dict `:` type($places)";
  let hasVerifier = 1;
}

def Autodiff_PopOp : Autodiff_Op<"pop", [MemoryEffects<[MemRead]>]> {
  let summary = "the value that was pushed under this number";
  let description = [{
    It must stay behind the pushes of its tape, which may be in the same kernel.
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
    Stands for the result of an operation with effects, or for what the forward
    loads of its own stores. If a trip count still depends on it after dead code
    is removed, that is an error.
  }];
  let results = (outs AnyType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Autodiff_UpstreamOp : Autodiff_Op<"upstream",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "read the cotangent of what was stored at an address";
  let description = [{
    The adjoint of a store. It reads the cotangent at the address, and clears
    it, since the store overwrote what was there before. `site` is the store's
    number in the forward. With `keep`, it does not clear (the adjoint of an
    atomic add). With `read`, it only clears: the cotangent has been read
    elsewhere. Masked lanes give zero.
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
  let summary = "add to the gradient at an address";
  let description = [{
    The adjoint of a load. It becomes a store or an atomic addition later.
    `site` is the load's number in the forward. `whole` says that nothing else
    is added at its addresses, given a check. `partial` says that this is one of
    several sums, `partials`, and which. A `remainder` is added to what earlier
    kernels have stored. What is `moved` is an alternative to the site's other
    contribution: the same sums at the same elements, from other lanes,
    iterations and programs, given these limits. One of both is erased.
  }];
  let arguments = (ins AnyType:$ptr, AnyType:$value, Optional<AnyType>:$mask,
                       Optional<I32>:$partial, I32Attr:$argument,
                       I32Attr:$site, OptionalAttr<Autodiff_CheckAttr>:$whole,
                       OptionalAttr<Autodiff_ExprAttr>:$partials, UnitAttr:$remainder,
                       OptionalAttr<ArrayAttr>:$moved);
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
            CheckAttr(), ExprAttr(), /*remainder=*/false, ArrayAttr());
    }]>
  ];
}

def Autodiff_SwapOp : Autodiff_Op<"swap",
    [Pure, SameOperandsAndResultType,
     DeclareOpInterfaceMethods<TT_AxisMapInterface, ["takesElements"]>]> {
  let summary = "swap the two elements along an axis of size 2";
  let description = [{
    `tl.sort`, `tl.topk` and `tl.flip` consist of such swaps. They are written
    with bits: x ^ (x₀ ^ x₁) is the other one of x₀ and x₁.
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
    [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "a value of a gradient that is not differentiated again";
  let description = [{
    What a function with a user-defined derivative computes, or its first
    derivative. It must not be differentiated again, since the definition does
    not cover the second derivative. It depends on the `inputs`, whether a
    derivative of `value` does or not; without any, it may depend on everything.
  }];
  let arguments = (ins AnyType:$value, Variadic<AnyType>:$inputs);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $value attr-dict `:` type($value) (`of` $inputs^ `:` type($inputs))?
  }];
}

def Autodiff_CustomVjpOp : Autodiff_Op<"custom_vjp",
    [NoMemoryEffect, AttrSizedOperandSegments, SingleBlock]> {
  let summary = "values whose derivative the user defines";
  let description = [{
    The results are the `values`, as functions of the `inputs`. The pullback
    gets the cotangents of the results, may use any value from above, and yields
    one cotangent for each input. The pushforward, if there is one, gets the
    tangents of the inputs, and yields one for each result. Both may have the
    values as further arguments, so that what they compute of these is not taken
    for the same of what computes the values. No derivative flows through
    `values` themselves. `rule` is the name that errors use.

    They are `exact` if their author says that they are the derivative of the
    values. Then what they compute has derivatives, and these are second ones.

    The pullback need not be linear: gradients may be clipped, or ignored. So it
    runs once for each time that the operation does, on the cotangent of that
    alone. Two operations on the same values are not one, which `call` tells
    them, and one in a branch or a loop is not moved out.
  }];
  let arguments = (ins Variadic<AnyType>:$values, Variadic<AnyType>:$inputs,
                       StrAttr:$rule, OptionalAttr<I32Attr>:$call,
                       UnitAttr:$exact);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$pullback, AnyRegion:$pushforward);
  let assemblyFormat = [{
    (`exact` $exact^)? $rule $values `:` type($values) `of` $inputs `:`
    type($inputs) `->` type($results) $pullback
    (`forward` $pushforward^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Autodiff_YieldOp : Autodiff_Op<"yield",
    [Pure, Terminator, HasParent<"CustomVjpOp">]> {
  let summary = "the cotangents of a custom_vjp's inputs, or tangents of results";
  let arguments = (ins Variadic<AnyType>:$yielded);
  let assemblyFormat = "($yielded^ `:` type($yielded))? attr-dict";
}

#endif // AUTODIFF_DIALECT
