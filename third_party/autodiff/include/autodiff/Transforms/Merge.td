//===- Merge.td - Contributions become one -----------------*- tablegen -*-===//

def MergeContributions : AutodiffPass<"autodiff-merge-contributions", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "add up what goes to the same addresses";
  let description = [{
    Where a kernel loads the same elements in several loops (looped norms), the
    last loop that contributes to their gradient computes all contributions, and
    adds them up; so does the last contribution outside of loops.
  }];
}

def MergeNests : AutodiffPass<"autodiff-merge-nests", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "add up what two ways through a row contribute";
  let description = [{
    Where a kernel goes along a row in one loop, and once more part by part
    (group norms with a weight for each channel), a nest of loops behind both
    goes by parts, computes what both contribute to an element, and adds it up.
    That each program goes through the same elements both times is checked on the
    host.
  }];
  let options = [
    ListOption<"atomic", "atomic", "unsigned",
               "arguments whose gradient must be accumulated atomically">
  ];
}

def MergeGathered : AutodiffPass<"autodiff-merge-gathered", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "add what is gathered where all elements are stored";
  let description = [{
    Where one load reads every element and others read some of the same row by
    an index from memory (the target of a cross-entropy, maybe only in rows that
    count), each lane of the first one whose position is an index adds what is
    contributed there. What has an index that no lane of the program stands for
    (given the mask and the range that a check on the host vouches for) is left
    to a kernel that runs afterwards, `@<kernel>_bwd_remainder`. That adds
    atomically: a `deterministic` backward has none, and only remarks are made.
  }];
  let options = [
    ListOption<"atomic", "atomic", "unsigned",
               "arguments whose gradient must be accumulated atomically">,
    Option<"deterministic", "deterministic", "bool", "false",
           "Nothing may be added atomically.">
  ];
}

def GatherWindows : AutodiffPass<"autodiff-gather-windows", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "have each element take what the windows it is in contribute";
  let description = [{
    Loads at several distances from a position (stencils, convolutions, pooling)
    overlap, and so do their contributions. If these are computed from positions
    alone, lane by lane, the program that an element belongs to computes those
    of its neighbours once more, and adds them up: one store for each element.
    That the elements are all of the tensor is checked on the host. What would
    take more loads than an atomic addition is worth is computed from values that
    the backward stores for a kernel behind it; if that is impossible, it is
    left, unless `always`.
  }];
  let options = [
    Option<"always", "always", "bool", "false",
           "whatever has to be computed once more">,
    ListOption<"atomic", "atomic", "unsigned",
               "arguments whose gradient must be accumulated atomically">
  ];
}
