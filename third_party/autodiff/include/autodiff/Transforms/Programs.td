//===- Programs.td - Which program does what ---------------*- tablegen -*-===//

def MarkStores : AutodiffPass<"autodiff-mark-stores", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "note where programs store, and what tells values apart";
  let description = [{
    If programs store different values to one address, any of them may stay
    there, and no derivative can say which. `autodiff.stores` lists the stores
    whose addresses a launch can compute exactly, and the numbers of a program
    that decide what value it stores. With these, the launch finds out whether
    several programs, or lanes of one, store different values.
  }];
}

def MarkAccesses : AutodiffPass<"autodiff-mark-accesses", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "note which elements of arguments the kernel touches";
  let description = [{
    A kernel may read around the tensor that it is given. Where another argument
    of the launch lies there, in the same storage, the two share memory as if
    their tensors overlapped. `autodiff.accessed` describes what is touched, as
    far as a launch can compute it.
  }];
}

def SpreadLoops : AutodiffPass<"autodiff-spread-loops", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "make iterations of a loop over the grid programs";
  let description = [{
    Programs may go through n iterations together: `for i in range(program_id,
    n, num_programs)`, over rows, tiles or blocks. If no iteration needs another
    one's results, n programs of one iteration do the same, and the kernel is
    rewritten so. `autodiff.launch` says how many programs there are, which
    numbers must not be negative for that, and what must hold of its stores: no
    two iterations may store to the same element.
  }];
}

def SinkStores : AutodiffPass<"autodiff-sink-stores", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "store once what both sides of a branch store";
  let description = [{
    If both sides of a branch end with a store to the same address (a loss that
    is zero for rows that are left out), the stored value becomes a result of
    the branch, and one store follows it.
  }];
}

def BoundLoops : AutodiffPass<"autodiff-bound-loops", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "leave out iterations that do nothing";
  let description = [{
    All that an iteration does may be inside a branch, `if j <= p` (causal
    masks, windows). Comparisons of the induction variable with a loop-invariant
    that have to be true for the branch to run become bounds of the loop. The
    rest of the condition stays. A loop that carries counters of its iterations
    only gets an earlier end, not a later start.
  }];
}

def FlattenReturns : AutodiffPass<"autodiff-flatten-returns", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "let programs that return early run empty loops";
  let description = [{
    Programs may return early, before they have done anything, in front of loops
    that load what other programs load, too. Then the return is removed: such
    programs run these loops from `begin` to `select(runs, end, begin)`, which
    is zero times. Their loads and stores are masked, and values that the return
    chose become selections. This is done where loops stand beside a load with a
    loaded index (the target of a cross-entropy), whose contribution is then
    added to theirs. Integers that say where a program's range of a tensor
    begins are loaded by all programs. They are listed in `autodiff.assumed`: if
    the launch cannot read them, either, the kernel stays as it is.
  }];
}

def BatchLoops : AutodiffPass<"autodiff-batch-loops", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "make iterations of loops over a row an axis of tiles";
  let description = [{
    If all loops of a kernel go over the same row, and some read it again, the
    kernel may hold the row in one tile. Independent iterations become a further
    axis of tiles, sums that loops carry become reductions over it, and what is
    loaded twice is loaded once.

    Only a launch knows whether the row is short enough. So without a `length`,
    `autodiff.batch` just says how many iterations there are and how long the
    axis may be. With a `length`, the loops are rewritten with an axis of that
    length, and `autodiff.launch` says which numbers must not be negative for
    it, and what must hold of stores.
  }];
  let options = [
    Option<"length", "length", "int64_t", "0", "The length of the axis, or 0.">,
    Option<"always", "always", "bool", "false",
           "Whether what is read once may be in one tile, too.">
  ];
}

def UnravelPositions : AutodiffPass<"autodiff-unravel-positions", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "make digits of a position axes of tiles";
  let description = [{
    A kernel may do the same at each position of a range, in tiles of T
    positions, and divide positions by numbers that divide one another: the
    column is p % C, the channel p / HW % C. It may as well use tiles with an
    axis for each digit of the position. Addresses are then linear in programs
    and lanes, and contributions to one address are reduced over axes.

    Only a launch knows how tiles are best cut. So without `lengths`,
    `autodiff.unravel` just says what limits the digits have, and how many lanes
    a tile. With `lengths`, the first for the lowest digit, tiles get axes of
    these lengths, and `autodiff.launch` says which numbers must not be negative
    for it, and what must hold of stores.
  }];
  let options = !listconcat(WantedOptions, [
    ListOption<"lengths", "lengths", "int64_t", "The lengths of the axes.">
  ]);
}

def UnwrapTiles : AutodiffPass<"autodiff-unwrap-tiles", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "read tiles up to the end of a tensor, without wrapping around";
  let description = [{
    Positions modulo a length, x % M, or replaced beyond it, where(x < M, x, 0),
    become x if nothing that is stored depends on the lanes x >= M. Loads mask
    these lanes. Numbers that must not be negative for this are listed in
    `autodiff.assumed`.
  }];
}
