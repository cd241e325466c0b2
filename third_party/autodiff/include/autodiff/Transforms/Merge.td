//===- Merge.td - Contributions become one -----------------*- tablegen -*-===//

def MergeContributions : AutodiffPass<"autodiff-merge-contributions", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "add up what goes to the same addresses";
  let description = [{
    A kernel may load the same elements in several loops (norms that go over a
    row twice). The last loop that adds to their gradient then computes all
    additions, and the others none. The same is done outside of loops: the last
    addition adds what all of them did.
  }];
}

def MergeNests : AutodiffPass<"autodiff-merge-nests", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "add up what two ways through a row contribute";
  let description = [{
    A kernel may go along a row in one loop, and again in a nest of two (group
    norms with a weight for each channel: over channels, and over the pixels of
    each). A nest behind both computes what both add to the gradient of an
    element, and adds the sum once. The host checks that each program goes
    through the same elements both times.
  }];
  let options = [
    ListOption<"atomic", "atomic", "unsigned",
               "arguments whose gradient must be accumulated atomically">
  ];
}

def MergeGathered : AutodiffPass<"autodiff-merge-gathered", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "add what is gathered where all elements are stored";
  let description = [{
    One load reads every element of a row, and others read some of that row by
    an index from memory (a cross-entropy loads `x[row, target[row]]`, maybe
    only in rows that count). Then each lane of the first load compares its
    position with the index, and where they are equal adds what the other load
    contributes. An index may be one that no lane of the program has, given the
    mask and a range that the host checks. That is left to a later kernel,
    `@<kernel>_bwd_remainder`, which adds atomically. A `deterministic` backward
    has no such kernel: only remarks are made.
  }];
  let options = [
    ListOption<"atomic", "atomic", "unsigned",
               "arguments whose gradient must be accumulated atomically">,
    Option<"deterministic", "deterministic", "bool", "false",
           "Nothing may be added atomically.">
  ];
}

def GatherWindows : AutodiffPass<"autodiff-gather-windows", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "let each element add up the contributions of its neighbours";
  let description = [{
    A kernel may load at several distances from a position: `x[i - 1]`, `x[i]`,
    `x[i + 1]` in stencils, convolutions, pooling. Several programs then add to
    the gradient of one element. If what they add is computed from positions
    alone, lane by lane, the program that owns the element computes its
    neighbours' additions, too, sums them, and stores once. The host checks that
    the elements are all of the tensor. If computing them again would load more
    than an atomic addition costs, the backward stores them for a kernel that
    runs after it. Where that is impossible, nothing is changed, unless
    `always`.
  }];
  let options = [
    Option<"always", "always", "bool", "false",
           "whatever has to be computed once more">,
    ListOption<"atomic", "atomic", "unsigned",
               "arguments whose gradient must be accumulated atomically">
  ];
}

def SkewLoops : AutodiffPass<"autodiff-skew-loops", "::mlir::ModuleOp", LooksAtBackward> {
  let summary = "count contributions of a loop by their element";
  let description = [{
    A loop may go through elements at growing distances from a position: `x[t -
    k]` for each tap k of a convolution. Then lanes, programs and iterations
    share the elements of x. Counted by q = t - k, each element has one lane of
    one program, in all iterations: there, iteration k contributes what the
    position q + k does, if that is computed from positions alone, lane by lane
    (products keep the lanes of their rows and columns). autodiff-interchange
    sums that over the iterations, or erases it. Where a neighbour takes more
    loads than an atomic addition costs, nothing is changed, unless `always`.
  }];
  let options = [
    Option<"always", "always", "bool", "false",
           "whatever has to be computed once more">,
    ListOption<"atomic", "atomic", "unsigned",
               "arguments whose gradient must be accumulated atomically">
  ];
}
