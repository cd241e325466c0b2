//===- Reverse.td - The adjoint and its residuals ----------*- tablegen -*-===//

def MarkResiduals : AutodiffPass<"autodiff-mark-residuals", "::mlir::triton::FuncOp"> {
  let summary = "name the values that a forward may save for its backward";
  let description = [{
    Wraps values in the outermost block of a kernel in `autodiff.residual`:
    results of loops, branches, reductions and products, stored values,
    conditions that take much arithmetic (a dropout's mask), and decisions
    (integers and conditions that are computed from floats).
  }];
}

def MarkStates : AutodiffPass<"autodiff-mark-states", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "mark the stores of states that a backward may read back";
  let description = [{
    A loop may carry a value and store it in every iteration, directly in its
    body. `autodiff.state` on that store holds the check that no element is
    stored to twice. A backward then loads the value from there, and needs no
    tape. Where memory holds the value rounded, that depends on the gradients
    that are asked for.
  }];
  let options = !listconcat(WantedOptions, CotangentOptions, RepeatedOptions);
}

def Reverse : AutodiffPass<"autodiff-reverse", "::mlir::ModuleOp", !listconcat(RewritesCopy, ["Sites"])> {
  let summary = "derive the backward of a kernel";
  let description = [{
    Adds `@<kernel>_bwd`: the forward's values are computed again, then the
    adjoint of every operation follows in reverse order. Memory is still
    abstract: `autodiff.upstream` reads a cotangent, and `autodiff.accumulate`
    adds to a gradient.
  }];
  let options = !listconcat(WantedOptions, CotangentOptions, AssumeOptions,
                            RepeatedOptions, [
    Option<"again", "again", "bool", "false",
           "leave what a derivative of the backward must know of: where "
           "derivatives were stopped or defined">
  ]);
}

def MarkLive : AutodiffPass<"autodiff-mark-live", "::mlir::ModuleOp", LooksAtOneBackward> {
  let summary = "note where contributions to gradients may be other than zero";
  let description = [{
    A kernel may load from beyond a tensor's end as long as what it stores does
    not depend on that. Contributions to the gradient are zero there, and
    autodiff-mask-loads has masked most such loads. For each argument,
    `autodiff.live` describes the addresses where contributions may be other
    than zero, as far as a launch can compute them. The launch checks that they
    are inside of the tensor.
  }];
}

def IgnoreOutputs : AutodiffPass<"autodiff-ignore-outputs", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "remove stores to arguments without a cotangent";
  let description = [{
    In the copy that is differentiated, stores are removed if the argument has
    no cotangent (integers, or outputs whose gradient nobody asks for) and the
    kernel does not read it. Values that only these stores used (the maximum of
    a softmax, stored) are then not outputs, and passes may replace them.
  }];
  let options = CotangentOptions;
}

def MaskLoads : AutodiffPass<"autodiff-mask-loads", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "load only lanes that outputs depend on";
  let description = [{
    Loads of the copy that is differentiated get masks for the elements on which
    no output depends in any program, such as columns that are loaded and not
    stored. Such elements get no gradient, and a NaN in them reaches none.
  }];
  let options = !listconcat(WantedOptions, CotangentOptions, AssumeOptions,
                            RepeatedOptions);
}

def RoundLate : AutodiffPass<"autodiff-round-late", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "round float64 where it is used";
  let description = [{
    In the copy that is differentiated, float64 numbers are rounded in front of
    each operation that takes them narrower, and behind those that repeat or move
    them. Adjoints of all these are added up in float64 then.
  }];
}

def LiftAssembly : AutodiffPass<"autodiff-lift-assembly", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "turn inline assembly between differentiated values into arithmetic";
  let description = [{
    In the copy that is differentiated, PTX becomes operations on each element:
    registers and predicates disappear, and packed elements are separated.
    Instructions that TTIR has no operation for (approximations, other
    roundings) stay, each as inline assembly of its own. The forward keeps the
    assembly, and so do values without a derivative. Assembly that cannot be
    understood is an error.
  }];
  let options = !listconcat(WantedOptions, CotangentOptions);
}

def PlaceTapes : AutodiffPass<"autodiff-place-tapes", "::mlir::ModuleOp"> {
  let summary = "replace tapes by buffers in memory";
  let description = [{
    An `autodiff.push` records a value of each iteration, and an `autodiff.pop`
    reads one. Every pop that is still used becomes a load from a buffer that
    the matching push fills. Other pushes are removed.
  }];
}

def Replay : AutodiffPass<"autodiff-replay", "::mlir::ModuleOp"> {
  let summary = "run loops again instead of recording their iterations";
  let description = [{
    An alternative to autodiff-place-tapes that needs no memory: an `autodiff.pop`
    becomes the result of a copy of the loop, which runs up to the iteration
    that is read. If a loop has few iterations, it and the loop that reverses it
    are unrolled.
  }];
}

def RecordMemory : AutodiffPass<"autodiff-record-memory", "::mlir::triton::FuncOp"> {
  let summary = "record values that the backward cannot compute again";
  let description = [{
    Inserts an `autodiff.push` for what the kernel loads from memory that it
    stores to, what atomic operations return, and the decisions of loops and
    branches that depend on computed floats. The backward reads them by
    `autodiff.pop`.
  }];
}

def SaveRecords : AutodiffPass<"autodiff-save-records", "::mlir::ModuleOp", !listconcat(LooksAtOneBackward, ["Taped"])> {
  let summary = "let the forward write what it records";
  let description = [{
    Every `autodiff.push` of the forward whose pop is still used gets a buffer.
    The augmented forward, `@<kernel>_fwd`, fills it; it is made if there is
    none.
  }];
  let options = [
    Option<"allowed", "allowed", "bool", "true", "allow an augmented forward">
  ];
}

def ChooseResiduals : AutodiffPass<"autodiff-choose-residuals", "::mlir::ModuleOp", LooksAtOneBackward> {
  let summary = "choose what the backward reloads instead of recomputing";
  let description = [{
    A minimum cut, in the outermost block of the backward, between values in
    memory and values that the adjoint needs. The cost is in bytes: those that
    are moved, or that could be moved in the time that arithmetic takes. Results
    of loops, branches, reductions and products are saved or reloaded, and so
    are decisions that depend on computed floats. The forward that saves values
    is added as `@<kernel>_fwd`. Values that the user's kernel stores anyway are
    loaded from its outputs, if a check at the launch says that no element is
    stored to twice.
  }];
  let options = !listconcat(RepeatedOptions, [
    Option<"save", "save", "bool", "true", "allow an augmented forward">,
    Option<"reload", "reload", "bool", "true", "allow reloading stored outputs">,
    Option<"derive", "derive", "bool", "false",
           "derive a forward also where it has nothing to save">
  ]);
}
