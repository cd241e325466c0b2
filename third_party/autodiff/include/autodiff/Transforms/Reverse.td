//===- Reverse.td - The adjoint and its residuals ----------*- tablegen -*-===//

def MarkResiduals : AutodiffPass<"autodiff-mark-residuals", "::mlir::triton::FuncOp"> {
  let summary = "name the values that a forward may save for its backward";
  let description = [{
    Wraps, at the kernel's outer level, what only a loop, branch, reduction or
    product can compute, what the kernel stores, conditions that take much
    arithmetic (what a dropout keeps), and what is decided by computed floats,
    in `autodiff.residual`.
  }];
}

def MarkStates : AutodiffPass<"autodiff-mark-states", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "mark the stores of states that a backward may read back";
  let description = [{
    Where a loop carries a value and stores it in every iteration, in the body
    itself, `autodiff.state` on the store holds the check that no element is
    stored to twice. A backward reads it then, instead of a tape.
  }];
  let options = RepeatedOptions;
}

def Reverse : AutodiffPass<"autodiff-reverse", "::mlir::ModuleOp", !listconcat(RewritesCopy, ["Sites"])> {
  let summary = "derive the backward of a kernel";
  let description = [{
    Adds `@<kernel>_bwd`: the primal values recomputed, then the adjoint of
    every operation in reverse order. Memory is still abstract: cotangents are
    taken with `autodiff.upstream`, gradients collected with
    `autodiff.accumulate`.
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
    A kernel may load from beyond a tensor what leads to nothing that it stores:
    contributions are zero there, and `autodiff-mask-loads` has kept most of it
    out of the loads. `autodiff.live` describes where each argument's may be
    something else, as far as a launch can know, so that it can see whether that
    is inside of the tensor.
  }];
}

def IgnoreOutputs : AutodiffPass<"autodiff-ignore-outputs", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "leave out what is stored where no gradient comes from";
  let description = [{
    The copy that is differentiated has no stores to arguments without a
    cotangent (of integers, or those that nobody uses) which the kernel does not
    read. What only these need (the maximum of a softmax, stored) is then free
    to be anything.
  }];
  let options = CotangentOptions;
}

def MaskLoads : AutodiffPass<"autodiff-mask-loads", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "load only lanes that outputs depend on";
  let description = [{
    Loads of the copy that is differentiated get masks that leave out elements
    on which no output depends in any program: what is read of rows, say, that
    are not stored. So they get no gradient, and nothing that memory holds there
    reaches one.
  }];
  let options = !listconcat(WantedOptions, CotangentOptions, AssumeOptions,
                            RepeatedOptions);
}

def LiftAssembly : AutodiffPass<"autodiff-lift-assembly", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "turn inline assembly between differentiated values into arithmetic";
  let description = [{
    In the copy that is differentiated, PTX becomes operations on each element:
    registers and predicates go, packed elements come apart, and what TTIR has
    no operation for (approximations, other roundings) stays an instruction on
    its own. The forward keeps the assembly, and so do values that carry no
    derivative. Assembly that cannot be understood is an error.
  }];
  let options = !listconcat(WantedOptions, CotangentOptions);
}

def Tape : AutodiffPass<"autodiff-tape", "::mlir::ModuleOp"> {
  let summary = "give the tapes that are read a place in memory";
  let description = [{
    Every `autodiff.pop` that is still used becomes a load from a buffer that
    the matching `autodiff.push` fills; pushes that nobody reads go.
  }];
}

def Replay : AutodiffPass<"autodiff-replay", "::mlir::ModuleOp"> {
  let summary = "run loops again where their tapes are read";
  let description = [{
    In place of autodiff-tape where there is no memory: an `autodiff.pop` becomes
    the result of a copy of the loop that runs up to the iteration that is read.
    A loop of few iterations, and the one that reverses it, are taken apart.
  }];
}

def RecordMemory : AutodiffPass<"autodiff-record-memory", "::mlir::triton::FuncOp"> {
  let summary = "mark what only this run of the primal can know";
  let description = [{
    Pushes what the kernel loads from memory that it stores to itself, what
    atomic operations return, and what loops and branches decide by computed
    floats. A backward pops these instead of computing them again.
  }];
}

def SaveRecords : AutodiffPass<"autodiff-save-records", "::mlir::ModuleOp", !listconcat(LooksAtOneBackward, ["Taped"])> {
  let summary = "let the forward write what it records";
  let description = [{
    Every record that the backward still reads gets a buffer, which the
    augmented forward (`@<kernel>_fwd`, made if there is none) fills.
  }];
  let options = [
    Option<"allowed", "allowed", "bool", "true", "allow an augmented forward">
  ];
}

def Residuals : AutodiffPass<"autodiff-residuals", "::mlir::ModuleOp", LooksAtOneBackward> {
  let summary = "choose what the backward reloads instead of recomputing";
  let description = [{
    A minimum cut between what memory holds and what the adjoint needs, at the
    outer level of the backward: cost is bytes moved, or that might be moved in
    the time that arithmetic takes; what only a loop, branch, reduction or
    product can compute must be saved or reloaded, and so must what is decided
    by computed floats. The forward that saves is added as `@<kernel>_fwd`; values that the primal
    stores anyway are reloaded from its outputs.
  }];
  let options = [
    Option<"save", "save", "bool", "true", "allow an augmented forward">,
    Option<"reload", "reload", "bool", "true", "allow reloading stored outputs">,
    Option<"derive", "derive", "bool", "false",
           "derive a forward also where it has nothing to save">
  ];
}
