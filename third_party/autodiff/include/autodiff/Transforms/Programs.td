//===- Programs.td - Which program does what ---------------*- tablegen -*-===//

def MarkStores : AutodiffPass<"autodiff-mark-stores", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "note where programs store, and what tells values apart";
  let description = [{
    Programs that store different values to one address leave any of them there:
    no derivative can say which. `autodiff.stores` describes the stores whose
    addresses a launch knows, all of them and no others, and which numbers of a
    program decide what it stores, so that the launch can see whether several
    programs, or lanes of one, disagree.
  }];
}

def SpreadLoops : AutodiffPass<"autodiff-spread-loops", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "make iterations of a loop over the grid programs";
  let description = [{
    A kernel whose programs go through n iterations together, each starting at its
    own number (of a row, a tile or a block) with steps as long as the grid, does
    the same as n programs that each run one iteration, if no iteration needs what
    another one does. The primal becomes the kernel of these. `autodiff.launch` says
    how many there are, which numbers must not be negative for that, and what must
    hold of its stores: no two iterations may store to the same element.
  }];
}

def SinkStores : AutodiffPass<"autodiff-sink-stores", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "store once what both sides of a branch store";
  let description = [{
    Where the last thing that both sides of a branch do to memory is to store to
    the same place (a loss of zero for rows that are left out), what they store
    becomes a result of the branch, and one store follows it.
  }];
}

def BoundLoops : AutodiffPass<"autodiff-bound-loops", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "leave out iterations that do nothing";
  let description = [{
    Where all that an iteration does stands behind a branch, comparisons of the
    induction variable with what is the same in all iterations, which have to hold
    for the branch, become bounds of the loop (`if j <= p`, for causal masks and
    windows). What else the branch asks for stays its condition. Loops whose
    values count along with the iterations end earlier, but do not start later.
  }];
}

def FlattenReturns : AutodiffPass<"autodiff-flatten-returns", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "let programs that return early run empty loops";
  let description = [{
    Where programs return before they have done anything, and loops behind load
    what programs share, the return goes: those loops end where they begin
    (`select(runs, end, begin)`), and what such a program would load or store is
    masked. What is chosen between the two ways becomes a selection. So it is
    where loops stand beside a load that data place (the target of a
    cross-entropy), which is then added to what they contribute. Integers that
    say where a program's part of a tensor is are loaded by all programs.
    `autodiff.assumed` has them: if the launch cannot read them either, the
    kernel stays as it is.
  }];
}

def BatchLoops : AutodiffPass<"autodiff-batch-loops", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "make iterations of loops over a row an axis of tiles";
  let description = [{
    A kernel whose loops all go over one row, which some of them read again, may
    hold the row in one tile, if it is not too long: iterations that need nothing
    of one another are a further axis, over which carried sums are reductions,
    and what is loaded twice is loaded once. `autodiff.batch` says how many
    iterations there are and how long the axis may be; whether there are few
    enough, only a launch can tell. With a `length`, they are put on an axis as
    long as that, and `autodiff.launch` says which numbers must not be negative
    for it, and what must hold of stores.
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
    A kernel that does the same at each position of a line, in tiles of T of
    them, and takes positions apart by numbers that divide one another (the
    column p % C, the channel p / HW % C), may as well go along it in tiles that
    have an axis for each digit. Addresses are then sums over programs and
    lanes, and what several positions contribute to one is summed over axes.
    `autodiff.unravel` says which limits the digits have, and how many lanes a
    tile; how these are best cut is seen in a launch. With `lengths`, the first
    for the lowest digit, they are cut like that, and `autodiff.launch` says
    which numbers must not be negative for it, and what must hold of stores.
  }];
  let options = !listconcat(WantedOptions, [
    ListOption<"lengths", "lengths", "int64_t", "The lengths of the axes.">
  ]);
}

def UnwrapTiles : AutodiffPass<"autodiff-unwrap-tiles", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "read tiles up to the end of a tensor, not around it";
  let description = [{
    Positions modulo a length, x % M, or back from beyond it, where(x < M, x, 0),
    become x where nothing that is stored depends on the lanes x >= M, and loads
    at these leave them out. Numbers that must not be negative for this are left
    in `autodiff.assumed`.
  }];
}
