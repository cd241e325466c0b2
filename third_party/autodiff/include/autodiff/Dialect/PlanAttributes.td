//===- PlanAttributes.td - Parts of a plan ------------------*- tablegen -*-===//
//
// Checks, buffers, launches and offers. docs/plan.md says what each means.
//
//===----------------------------------------------------------------------===//

#ifndef AUTODIFF_PLAN_ATTRIBUTES
#define AUTODIFF_PLAN_ATTRIBUTES

include "autodiff/Dialect/AutodiffAttributes.td"

class Autodiff_Enum<string name, string description, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, description, cases> {
  let cppNamespace = "::mlir::autodiff";
  let genSpecializedAttr = 0;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

def Autodiff_DigitOwner : Autodiff_Enum<"DigitOwner", "what a digit counts", [
  I32EnumAttrCase<"Any", 0, "any">,
  I32EnumAttrCase<"Axis", 1, "axis">,
  I32EnumAttrCase<"Loop", 2, "loop">,
  I32EnumAttrCase<"Program", 3, "program">
]>;

def Autodiff_DigitAttr : Autodiff_Attr<"Digit", "digit"> {
  let summary = "a term of an index: a stride times a counter";
  let description = [{
    `<16 x grid0>` counts from 0 to grid0 − 1 in steps of 16; `?` is an unknown
    extent. In a reach, a digit also says what it counts: `<1 x 8 of axis 0>`
    lanes of a tile, `<1 x ? of loop 1>` iterations (0 is the outermost loop
    around the access), and `<8 x pid0 of program>` is pid0 itself.
  }];
  let parameters = (ins "ExprAttr":$stride, OptionalParameter<"ExprAttr">:$extent,
      DefaultValuedParameter<"DigitOwner", "DigitOwner::Any">:$owner,
      DefaultValuedParameter<"unsigned", "0">:$number);
  let hasCustomAssemblyFormat = 1;
  let builders = [AttrBuilder<(ins "ExprAttr":$stride, "ExprAttr":$extent), [{
    return $_get($_ctxt, stride, extent, DigitOwner::Any, 0);
  }]>];
}

def Autodiff_DimensionAttr : Autodiff_Attr<"Dimension", "dim"> {
  let summary = "an index of an address, and its stride";
  let description = [{
    `<arg3 x [<1 x 64>, <64 x grid0>] below arg4>` is an index lane + 64·pid
    below arg4, with stride arg3. The first digits may have a bound of their
    own, and the index may start `from` a number.
  }];
  let parameters = (ins "ExprAttr":$stride,
      OptionalArrayRefParameter<"DigitAttr">:$digits,
      OptionalParameter<"ExprAttr">:$bound,
      DefaultValuedParameter<"unsigned", "0">:$chunkDigits,
      OptionalParameter<"ExprAttr">:$chunkBound,
      OptionalParameter<"ExprAttr">:$start);
  let assemblyFormat = [{
    `<` custom<Expr>($stride) `x` custom<List>($digits)
    (`below` custom<Expr>($bound)^)?
    (`chunk` $chunkDigits^ `below` custom<Expr>($chunkBound))?
    (`from` custom<Expr>($start)^)? `>`
  }];
  let builders = [AttrBuilder<(ins "ExprAttr":$stride, "DigitAttr":$digit), [{
    return $_get($_ctxt, stride, digit, ExprAttr(), 0, ExprAttr(), ExprAttr());
  }]>];
}

def Autodiff_LimitAttr : Autodiff_Attr<"Limit", "limit"> {
  let summary = "that a number is at most another one";
  let parameters = (ins "ExprAttr":$number, "ExprAttr":$most);
  let assemblyFormat = [{
    `<` custom<Expr>($number) `at_most` custom<Expr>($most) `>`
  }];
}

def Autodiff_CheckKind : Autodiff_Enum<"CheckKind", "what holds of addresses", [
  I32EnumAttrCase<"Distinct", 0, "distinct">,
  I32EnumAttrCase<"Bijective", 1, "bijective">
]>;

def Autodiff_CheckAttr : Autodiff_Attr<"Check", "check"> {
  let summary = "a fact about addresses that a launch has to check";
  let parameters = (ins EnumParameter<Autodiff_CheckKind>:$kind,
      "unsigned":$argument, "ExprAttr":$offset,
      OptionalArrayRefParameter<"DimensionAttr">:$dims,
      OptionalArrayRefParameter<"ExprAttr">:$notNegative,
      DefaultValuedParameter<"bool", "false">:$moves,
      OptionalArrayRefParameter<"ExprAttr">:$programs,
      DefaultValuedParameter<"unsigned", "0">:$summed,
      DefaultValuedParameter<"bool", "false">:$whole,
      OptionalArrayRefParameter<"LimitAttr">:$within);
  let assemblyFormat = [{
    `<` $kind $argument `at` custom<Expr>($offset) custom<List>($dims)
    (`not_negative` custom<List>($notNegative)^)? (`moves` `=` $moves^)?
    (`programs` custom<List>($programs)^)? (`summed` `=` $summed^)?
    (`whole` `=` $whole^)? (`within` custom<List>($within)^)? `>`
  }];
  let builders = [AttrBuilder<(ins "CheckKind":$kind, "unsigned":$argument,
      "ExprAttr":$offset, "::llvm::ArrayRef<DimensionAttr>":$dims,
      "::llvm::ArrayRef<ExprAttr>":$notNegative, "bool":$moves,
      CArg<"::llvm::ArrayRef<ExprAttr>", "{}">:$programs), [{
    return $_get($_ctxt, kind, argument, offset, dims, notNegative, moves,
                 programs, 0, false, ::llvm::ArrayRef<LimitAttr>());
  }]>];
  let extraClassDeclaration = [{
    /// The same check for sums over the first `summed` of `programs`.
    CheckAttr ofPrograms(::llvm::ArrayRef<ExprAttr> programs,
                         unsigned summed) const;
    /// The same check, valid only within limits.
    CheckAttr within(::llvm::ArrayRef<LimitAttr> limits) const;
    /// The same check for all elements, not only those that are read.
    CheckAttr aboutWhole() const;
  }];
}

def Autodiff_ConstraintAttr : Autodiff_Attr<"Constraint", "constraint"> {
  let summary = "that a sum of digits is less than a number";
  let parameters = (ins OptionalArrayRefParameter<"DigitAttr">:$digits,
                        "ExprAttr":$bound);
  let assemblyFormat = [{
    `<` custom<List>($digits) `below` custom<Expr>($bound) `>`
  }];
}

def Autodiff_ReachAttr : Autodiff_Attr<"Reach", "reach"> {
  let summary = "all addresses that an access may touch";
  let description = [{
    `guards` are conditions beside the addresses. Each is a list of
    alternatives, of which one holds; an alternative is a list of constraints.
  }];
  let parameters = (ins "ExprAttr":$offset,
      OptionalArrayRefParameter<"DimensionAttr">:$dims,
      DefaultValuedParameter<"bool", "false">:$exact,
      OptionalArrayRefParameter<"ExprAttr">:$notNegative,
      OptionalArrayRefParameter<"ArrayAttr">:$guards);
  let assemblyFormat = [{
    `<` custom<Expr>($offset) custom<List>($dims) (`exact` `=` $exact^)?
    (`not_negative` custom<List>($notNegative)^)?
    (`guards` custom<List>($guards)^)? `>`
  }];
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Autodiff_BufferKind : Autodiff_Enum<"BufferKind", "who fills a buffer", [
  I32EnumAttrCase<"Saved", 0, "saved">,
  I32EnumAttrCase<"Tape", 1, "tape">,
  I32EnumAttrCase<"Handover", 2, "handover">,
  I32EnumAttrCase<"Tally", 3, "tally">
]>;

def Autodiff_BufferAttr : Autodiff_Attr<"Buffer", "buffer"> {
  let summary = "memory that several kernels of a plan use";
  let description = [{
    A `saved` buffer is filled by the augmented forward, a `tape` inside the
    backward, a `handover` by one backward kernel for others. A `tally` is
    cleared, and counts the contributions to each block of a sum. The buffer has
    `size` elements.
  }];
  let parameters = (ins EnumParameter<Autodiff_BufferKind>:$kind,
                        StringRefParameter<>:$name, "Type":$elementType,
                        "ExprAttr":$size);
  let assemblyFormat = [{
    `<` $kind $name `:` $elementType `,` custom<Expr>($size) `>`
  }];
}

def Autodiff_GradientInit : Autodiff_Enum<"GradientInit", "what is there first", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"Zero", 1, "zero">,
  I32EnumAttrCase<"Cotangent", 2, "cotangent">
]>;

def Autodiff_Accumulate : Autodiff_Enum<"Accumulate", "how contributions meet", [
  I32EnumAttrCase<"Store", 0, "store">,
  I32EnumAttrCase<"Partial", 1, "partial">,
  I32EnumAttrCase<"Atomic", 2, "atomic">
]>;

def Autodiff_Confined : Autodiff_Enum<"Confined", "which accesses are masked", [
  I32EnumAttrCase<"Nothing", 0, "nothing">,
  I32EnumAttrCase<"All", 1, "all">,
  I32EnumAttrCase<"Sums", 2, "sums">
]>;

def Autodiff_GradientAttr : Autodiff_Attr<"Gradient", "gradient"> {
  let summary = "the memory of a gradient";
  let parameters = (ins "unsigned":$argument, "Type":$elementType,
      EnumParameter<Autodiff_GradientInit>:$init,
      EnumParameter<Autodiff_Accumulate>:$accumulate,
      OptionalParameter<"ExprAttr">:$partials,
      DefaultValuedParameter<"bool", "false">:$returned,
      DefaultValuedParameter<"bool", "false">:$overwritten,
      DefaultValuedParameter<"bool", "false">:$remainder,
      DefaultValuedParameter<"Confined", "Confined::Nothing">:$confined,
      DefaultValuedParameter<"int64_t", "0">:$margin,
      OptionalArrayRefParameter<"CheckAttr">:$checks,
      OptionalArrayRefParameter<"ReachAttr">:$reach);
  let assemblyFormat = [{
    `<` $accumulate $argument `:` $elementType `init` `=` $init
    (`partials` custom<Expr>($partials)^)? (`returned` `=` $returned^)?
    (`overwritten` `=` $overwritten^)? (`remainder` `=` $remainder^)?
    (`confined` `=` $confined^)? (`margin` `=` $margin^)?
    (`checks` custom<List>($checks)^)? (`reach` custom<List>($reach)^)? `>`
  }];
  let extraClassDeclaration = [{
    /// The same gradient with another margin.
    GradientAttr withMargin(int64_t margin) const;
  }];
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

def Autodiff_LaunchAttr : Autodiff_Attr<"Launch", "launch"> {
  let summary = "a launch that does the same as the user's";
  let description = [{
    The iterations of the loop at `position` are programs, those of the loops at
    `batched` an axis of that many lanes, and the digits of positions that are
    divided at `unraveled` axes of these lengths. The `assumed` numbers must not
    be negative.
  }];
  let parameters = (ins ArrayRefParameter<"ExprAttr">:$grid,
      OptionalArrayRefParameter<"ExprAttr">:$assumed,
      OptionalArrayRefParameter<"CheckAttr">:$checks,
      OptionalParameter<"StringAttr">:$position,
      DefaultValuedParameter<"int64_t", "0">:$length,
      OptionalParameter<"ArrayAttr">:$batched,
      OptionalArrayRefParameter<"int64_t">:$lengths,
      OptionalParameter<"StringAttr">:$unraveled);
  let assemblyFormat = [{
    `<` custom<List>($grid) (`assumed` custom<List>($assumed)^)?
    (`checks` custom<List>($checks)^)? (`position` $position^)?
    (`batched` $length^ $batched)? (`unraveled` `[` $lengths^ `]` $unraveled)? `>`
  }];
}

def Autodiff_BatchAttr : Autodiff_Attr<"Batch", "batch"> {
  let summary = "an offer to make iterations of all loops an axis of tiles";
  let parameters = (ins "ExprAttr":$trips, "int64_t":$most,
                        DefaultValuedParameter<"bool", "false">:$exact);
  let assemblyFormat = [{
    `<` custom<Expr>($trips) `at_most` $most (`exact` `=` $exact^)? `>`
  }];
}

def Autodiff_UnravelAttr : Autodiff_Attr<"Unravel", "unravel"> {
  let summary = "an offer to give tiles an axis for each digit of positions";
  let parameters = (ins ArrayRefParameter<"ExprAttr">:$limits,
                        "int64_t":$lanes);
  let assemblyFormat = "`<` custom<List>($limits) `lanes` `=` $lanes `>`";
}

def Autodiff_StoredAttr : Autodiff_Attr<"Stored", "stored"> {
  let summary = "where a store of the user's kernel goes";
  let description = [{
    `deciders` are sums of digits. Wherever all are equal, the stored values are
    equal. So are those of two stores with the same `function`, a number, if
    deciders are equal one by one, or if they are where each has swapped with
    the one that `exchange` names.
  }];
  let parameters = (ins "unsigned":$argument, "StringAttr":$position,
      "ReachAttr":$reach, OptionalParameter<"ArrayAttr">:$deciders,
      OptionalParameter<"IntegerAttr">:$function,
      OptionalParameter<"DenseI64ArrayAttr">:$exchange,
      OptionalParameter<"CheckAttr">:$check);
  let assemblyFormat = [{
    `<` $argument $position $reach (`deciders` $deciders^)?
    (`function` $function^)? (`exchange` $exchange^)? (`check` $check^)? `>`
  }];
}

def Autodiff_AccessedAttr : Autodiff_Attr<"Accessed", "accessed"> {
  let summary = "which elements of an argument the user's kernel touches";
  let description = [{
    One reach for each load, store or atomic operation, without repetitions; `?`
    if a launch cannot compute it.
  }];
  let parameters = (ins "unsigned":$argument,
                        ArrayRefParameter<"ReachAttr">:$reach);
  let assemblyFormat = "`<` $argument custom<List>($reach) `>`";
}

def Autodiff_LiveAttr : Autodiff_Attr<"Live", "live"> {
  let summary = "where contributions to a gradient may be other than zero";
  let description = [{
    One reach for each load that contributes; `?` if a launch cannot compute it.
  }];
  let parameters = (ins "unsigned":$argument,
                        ArrayRefParameter<"ReachAttr">:$reach);
  let assemblyFormat = "`<` $argument custom<List>($reach) `>`";
}

//===----------------------------------------------------------------------===//
// What the host does
//===----------------------------------------------------------------------===//

def Autodiff_HostStage : Autodiff_Enum<"HostStage", "when a step is carried out", [
  I32EnumAttrCase<"Forward", 0, "forward">,
  I32EnumAttrCase<"Prepare", 1, "prepare">,
  I32EnumAttrCase<"Launch", 2, "launch">,
  I32EnumAttrCase<"Finish", 3, "finish">
]>;

def Autodiff_HostStageAttr
    : EnumAttr<Autodiff_Dialect, Autodiff_HostStage, "host_stage"> {
  let assemblyFormat = "`` $value";
}

// docs/host-program.md says what each does.
def Autodiff_StepKind : Autodiff_Enum<"StepKind", "what the host does", [
  I32EnumAttrCase<"Copy", 0, "copy">,
  I32EnumAttrCase<"Count", 1, "count">,
  I32EnumAttrCase<"Evaluate", 2, "evaluate">,
  I32EnumAttrCase<"Allocate", 3, "allocate">,
  I32EnumAttrCase<"LaunchForward", 4, "launch_forward">,
  I32EnumAttrCase<"LayOut", 5, "lay_out">,
  I32EnumAttrCase<"StandIn", 6, "stand_in_for">,
  I32EnumAttrCase<"Make", 7, "make">,
  I32EnumAttrCase<"Tally", 8, "tally">,
  I32EnumAttrCase<"Launch", 9, "launch">,
  I32EnumAttrCase<"Round", 10, "round">,
  I32EnumAttrCase<"AddUp", 11, "add_up">,
  I32EnumAttrCase<"Convert", 12, "convert">,
  I32EnumAttrCase<"Keep", 13, "keep">,
  I32EnumAttrCase<"Save", 14, "save">,
  I32EnumAttrCase<"Return", 15, "return">
]>;
def Autodiff_StepKindAttr
    : EnumAttr<Autodiff_Dialect, Autodiff_StepKind, "step_kind"> {
  let assemblyFormat = "`` $value";
}

//===----------------------------------------------------------------------===//
// What to ask for next
//===----------------------------------------------------------------------===//

def Autodiff_Failure : Autodiff_Enum<"Failure", "what a launch does not show", [
  I32EnumAttrCase<"Nothing", 0, "nothing">,
  I32EnumAttrCase<"Launch", 1, "launch">,
  I32EnumAttrCase<"Gradient", 2, "gradient">,
  I32EnumAttrCase<"Output", 3, "output">,
  I32EnumAttrCase<"Reach", 4, "reach">,
  I32EnumAttrCase<"Tapes", 5, "tapes">
]>;

// Spelled as the keys of a request.
def Autodiff_RequestKey : Autodiff_Enum<"RequestKey", "what is asked for", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"Assume", 1, "assume">,
  I32EnumAttrCase<"Reload", 2, "reload">,
  I32EnumAttrCase<"Checkpoint", 3, "checkpoint">,
  I32EnumAttrCase<"Deterministic", 4, "deterministic">,
  I32EnumAttrCase<"Atomic", 5, "atomic">,
  I32EnumAttrCase<"Repeated", 6, "repeated">,
  I32EnumAttrCase<"Confine", 7, "confine">,
  I32EnumAttrCase<"Axes", 8, "axes">
]>;

def Autodiff_NextAttr : Autodiff_Attr<"Next", "next"> {
  let summary = "what to ask for if a launch needs another plan";
  let description = [{
    An entry applies to launches in which the `notNegative` numbers are not
    negative and something `fails`: the plan's facts about the launch, the
    checks of a gradient or an output, that a gradient's contributions are near
    its tensor, or that the tapes fit into memory. It then changes the request:
    `<atomic [0] fails = gradient of 0>` adds argument 0 to a list, `<assume [0]
    fails = launch>` sets a flag, and `axes [64]` sets lengths of axes, or gives
    them up if there are none. `none []` says that there is no plan for the
    launch.
  }];
  let parameters = (ins OptionalArrayRefParameter<"ExprAttr">:$notNegative,
      DefaultValuedParameter<"Failure", "Failure::Nothing">:$failure,
      DefaultValuedParameter<"int64_t", "-1">:$argument,
      EnumParameter<Autodiff_RequestKey>:$key,
      OptionalArrayRefParameter<"ExprAttr">:$value);
  let assemblyFormat = [{
    `<` $key custom<List>($value) (`not_negative` custom<List>($notNegative)^)?
    (`fails` `=` $failure^)? (`of` $argument^)? `>`
  }];
  let genVerifyDecl = 1;
}

#endif // AUTODIFF_PLAN_ATTRIBUTES
