//===- Schedule.td - How contributions meet ----------------*- tablegen -*-===//

def ReadCotangents : AutodiffPass<"autodiff-read-cotangents", "::mlir::ModuleOp", LooksAtOneBackward> {
  let summary = "read upstream gradients where they are";
  let description = [{
    Where a kernel stores to each address of an output at most once, given a
    check that the launch evaluates, and adds nothing to its gradient,
    `autodiff.upstream` becomes a load from the caller's tensor. So it does
    where a kernel loads an argument and then overwrites every element of it:
    what it loaded is as another tensor then, and has a gradient of its own.
  }];
  let options = RepeatedOptions;
}

def OrderLoops : AutodiffPass<"autodiff-order-loops", "::mlir::triton::FuncOp"> {
  let summary = "run loops of the backward in the forward's order";
  let description = [{
    A loop whose iterations only add to sums and to gradients gives the same in
    any order. It then counts up, as the primal's does.
  }];
}

def CountUp : AutodiffPass<"autodiff-count-up", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "let loops that go down go up";
  let description = [{
    A primal loop that counts up but uses only numbers that fall, n − 1 − i, goes
    through its memory from behind. If the backward's loops that contribute there
    may run in any order, these and the primal's let the numbers rise instead, so
    that iterations start at the same place in all programs.
  }];
}

def Interchange : AutodiffPass<"autodiff-interchange", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "make iterations programs, and programs iterations";
  let description = [{
    A contribution in a parallel loop whose address depends on the iteration
    and not on some part of the program ids (operands of products, keys and
    values of attention) goes to a kernel of its own. There each program owns
    an address: it stands for one iteration of the loop, and runs over all
    programs that have it. What these would compute again and again is left for
    it in scratch memory by the kernel that stays. Gradients that only an iteration
    of one program contributes to follow, if that leaves a loop of the kernel
    that stays with nothing to do: the tiles are read once for both.
  }];
  let options = [
    ListOption<"atomic", "atomic", "unsigned",
               "arguments whose gradient must be accumulated atomically">
  ];
}

def Persist : AutodiffPass<"autodiff-persist", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "let few programs do the work of many, and sum on the way";
  let description = [{
    Where all programs contribute to the same addresses (weights of a norm, a
    bias), each of few programs runs over its part of them with the sums in
    registers, and stores them as one of several partial sums.
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
    Lowers `autodiff.accumulate`, and `autodiff.upstream` where it is left, to
    stores and atomics on gradient buffers. A gradient whose addresses are
    distinct across programs and iterations, given checks that the launch
    evaluates, is stored (into cleared memory where data decide which addresses
    are touched). Where those of several contributions are, but not all
    together, they take turns: the first one stores, and later ones add, in
    later kernels or behind a barrier. Others are added atomically in f32.
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
  let summary = "keep gradients inside of their buffers";
  let description = [{
    A kernel may load from anywhere, also where there is no tensor. Where its
    addresses are sums whose extent a launch knows, it makes the buffer of the
    gradient large enough. The others, which memory holds, say, are compared
    with the ends of the buffer, run by run (`Runs.h`), before something is
    stored or added there. What is outside is nobody's gradient.
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
  let summary = "take program ids apart into places";
}

def AskNext : AutodiffPass<"autodiff-ask-next", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "say which plan to ask for where this one does not do";
  let description = [{
    A plan is for the launches that pass its checks. `autodiff.next` is for the
    others, and for those that allow of a better plan: steps in order of
    priority, of which the first one counts in which anything holds of a launch.
    What is asked for is then changed by all of that step that holds. Every
    change goes one way, so that no request comes again: flags are set, lists
    grow, and axes are taken, then given up.
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
    Arguments of the primal and buffers that a kernel does not use, for which
    the runtime would have to keep memory, and what the plan says of operands
    that no kernel takes. Other buffers are numbered anew.
  }];
}

def Sizes : AutodiffPass<"autodiff-sizes", "::mlir::ModuleOp", !listconcat(LooksAtBackward, ["Unsized"])> {
  let summary = "hand kernels the sizes that the host knows";
  let description = [{
    `autodiff.size` becomes an argument. Counters that no size depends on go,
    and with the last one the counting kernel.
  }];
}
