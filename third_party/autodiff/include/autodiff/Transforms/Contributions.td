//===- Contributions.td - How contributions meet -----------*- tablegen -*-===//

def ReadCotangents : AutodiffPass<"autodiff-read-cotangents", "::mlir::ModuleOp", LooksAtOneBackward> {
  let summary = "read upstream gradients where they are";
  let description = [{
    If a kernel stores to each address of an output at most once, given a check
    that the launch evaluates, and adds nothing to its gradient, then
    `autodiff.upstream` becomes a load from the caller's gradient tensor: no
    copy that could be cleared is needed. The same holds where a kernel loads an
    argument and then overwrites every element of it: the loaded tensor and the
    stored one have separate gradients.
  }];
  let options = RepeatedOptions;
}

def OrderLoops : AutodiffPass<"autodiff-order-loops", "::mlir::triton::FuncOp"> {
  let summary = "run loops of the backward in the forward's order";
  let description = [{
    If the iterations of a loop only add to sums and to gradients, their order
    does not matter. Such a loop then counts up, like the forward's.
  }];
}

def CountUp : AutodiffPass<"autodiff-count-up", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "let loops that go backwards through memory go forwards";
  let description = [{
    A loop of the forward may count up and use only n − 1 − i, so that it goes
    through memory backwards. If the backward's loops that contribute there may
    run in any order, they and the forward's loop use i instead. Then iterations
    start at the same place in all programs.
  }];
}

def Interchange : AutodiffPass<"autodiff-interchange", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "exchange the grid with loops";
  let description = [{
    In a loop whose iterations may run in any order, the address of a
    contribution may depend on the iteration but not on all program ids
    (operands of products; keys and values of attention). Such a contribution
    gets a kernel of its own, in which each program owns an address: it stands
    for one iteration, and loops over the programs that had it. So it can add in
    registers and store once. Values that it would compute again for each of
    them are stored by the first kernel in scratch memory. Contributions that
    belong to one iteration of one program move to the new kernel, too, if a
    loop of the first one then has nothing left to do: tiles are loaded once for
    both.
  }];
  let options = [
    ListOption<"atomic", "atomic", "unsigned",
               "arguments whose gradient must be accumulated atomically">
  ];
}

def Persist : AutodiffPass<"autodiff-persist", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "let few programs do the work of many, with sums in registers";
  let description = [{
    All programs may contribute to the same addresses (weights of a norm, a
    bias). Then a few programs loop over the work of all. Each keeps the sums in
    registers, and stores them as one of several partial sums, which the runtime
    adds up.
  }];
  let options = [
    ListOption<"atomic", "atomic", "unsigned",
               "arguments whose gradient must be accumulated atomically">,
    Option<"always", "always", "bool", "false",
           "do so wherever it saves atomics, also where these cost little">
  ];
}

def LowerAccumulates : AutodiffPass<"autodiff-lower-accumulates", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "decide how contributions to a gradient meet";
  let description = [{
    Lowers `autodiff.accumulate`, and what is left of `autodiff.upstream`, to
    stores and atomics on gradient buffers.

    If the addresses are distinct across programs and iterations, given checks
    that the launch evaluates, the gradient is stored: into cleared memory if
    data decide which addresses are touched. If the addresses of each of several
    contributions are distinct, but not those of all together, they take turns:
    the first one stores, and later ones add without atomics, in later kernels
    or behind a barrier. All others are added atomically in f32.
  }];
  let options = [
    ListOption<"atomic", "atomic", "unsigned",
               "arguments whose gradient must be accumulated atomically">,
    ListOption<"confine", "confine", "unsigned",
               "arguments whose gradient reaches too far for a larger buffer">,
    Option<"deterministic", "deterministic", "bool", "false",
           "refuse atomics, whose order differs from run to run">
  ];
}

def ConfineGradients : AutodiffPass<"autodiff-confine-gradients", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "keep accesses to gradients inside of their buffers";
  let description = [{
    A kernel may load from anywhere, also outside of its tensors. Where a launch
    can compute how far its addresses reach, it makes the gradient's buffer
    large enough. Other addresses, such as those that are loaded from memory,
    are compared with the ends of the buffer, run by run (`Runs.h`), and stores
    and additions outside are masked. There is no tensor there whose gradient
    they could be.
  }];
  let options = [
    Option<"masks", "masks", "bool", "true",
           "mask accesses; otherwise only find the margins that buffers need">
  ];
}

def TallySums : AutodiffPass<"autodiff-tally-sums", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "store what is added to a part of an atomic sum alone";
  let description = [{
    Halves are added atomically in f32, and the sum is rounded. Where data decide
    which elements of a tensor are touched, and these are few for its size (rows
    of a table), most of them often get one contribution, which need neither be
    added nor rounded later. A run (`Runs.h`) is what an addition touches at a
    time, each element once. The storage is cut into blocks (`SumBlocks.h`). A
    kernel that repeats the addresses counts for each block the runs that touch
    it; a run that touches several blocks counts twice in each of them.

    So a block whose count is 1 is touched by one run, which touches no other
    block: whatever it adds is the whole sum of its elements, and it is stored
    into the cleared gradient, rounded. All other runs only touch blocks whose
    count is 2 or more, to which nothing is stored: they are added atomically in
    f32, in blocks that one kernel has cleared before and another one rounds
    afterwards. Nothing else of the f32 memory is ever written or read. That
    holds for any blocks that cover the storage; their shape only decides how
    many runs are alone. A condition says when this pays.
  }];
}

def LowerPrograms : AutodiffPass<"autodiff-lower-programs", "::mlir::triton::FuncOp"> {
  let summary = "replace programs' places by arithmetic on program ids";
}

def VerifyWrites : AutodiffPass<"autodiff-verify-writes", "::mlir::ModuleOp"> {
  let summary = "refuse kernels that may write outside of what is allocated";
  let description = [{
    For each store and each atomic operation of a derived kernel, something says
    that it stays inside of the memory that the runtime allocates (`Writes.h`).
    If nothing does, that is an internal error.
  }];
}

def AskNext : AutodiffPass<"autodiff-ask-next", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "say which plan to ask for where this one does not do";
  let description = [{
    A plan is for launches that pass its checks. `autodiff.next` is for the
    others, and for launches that could have a better plan. It lists steps in
    order of priority. A step is a list of conditions, each with a change of the
    request. The first step with a condition that holds counts, and all its
    changes whose conditions hold are made. Changes go one way, so that no
    request comes twice: flags are set, lists grow, and axes are taken, then
    given up.
  }];
  let options = [
    Option<"assume", "assume", "bool", "true", "something may be assumed">,
    Option<"reload", "reload", "bool", "true", "outputs may be read back">,
    Option<"checkpoint", "checkpoint", "bool", "false",
           "tapes hold checkpoints">,
    Option<"deterministic", "deterministic", "bool", "false",
           "atomics are refused">,
    Option<"adds", "adds", "bool", "false",
           "some gradients have to meet in atomics already">,
    Option<"hasAxes", "has-axes", "bool", "false", "axes have been taken">,
    Option<"takesAxes", "takes-axes", "bool", "true", "axes may be taken">
  ];
}

def ListLaunches : AutodiffPass<"autodiff-list-launches", "::mlir::ModuleOp"> {
  let summary = "give every derived kernel a launch in the plan";
}

def TrimOperands : AutodiffPass<"autodiff-trim-operands", "::mlir::ModuleOp"> {
  let summary = "drop what no kernel of a plan uses";
  let description = [{
    Removes arguments of the user's kernel and buffers that a kernel does not
    use, so that the runtime need not keep memory for them, and what the plan
    says of operands that no kernel takes. The buffers that stay are numbered
    anew.
  }];
}

def ListSteps : AutodiffPass<"autodiff-list-steps", "::mlir::ModuleOp"> {
  let summary = "write down what the host does, in order";
  let description = [{
    The steps of a plan make memory and numbers, launch kernels, and make
    gradients of what these leave: see docs/host-program.md.
  }];
}

def PassSizes : AutodiffPass<"autodiff-pass-sizes", "::mlir::ModuleOp", !listconcat(LooksAtBackward, ["Unsized"])> {
  let summary = "pass the sizes that the host computes to kernels";
  let description = [{
    `autodiff.size` becomes an argument of the kernel. Counters that no size
    depends on are removed, and with the last one the counting kernel.
  }];
}
