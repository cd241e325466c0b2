//===- Passes.td - From a primal kernel to its backward -----*- tablegen -*-===//
#ifndef AUTODIFF_PASSES
#define AUTODIFF_PASSES

include "mlir/Pass/PassBase.td"

class AutodiffPass<string argument, string operation> : Pass<argument, operation> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::autodiff::AutodiffDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::triton::TritonDialect",
    "::mlir::ub::UBDialect"
  ];
}

def HoldLoops : AutodiffPass<"autodiff-hold-loops", "::mlir::triton::FuncOp"> {
  let summary = "keep loops that run once beside others like them";
  let description = [{
    Where a program's loop goes through one block, from a place of the program's
    own on (the diagonal of causal attention), and another loop has such steps,
    too, its end is `autodiff.held`. Both then load the same places in the same
    iterations, whoever runs these, and autodiff-exchange adds up what they
    contribute there.
  }];
}

def ReleaseLoops : AutodiffPass<"autodiff-release-loops", "::mlir::triton::FuncOp"> {
  let summary = "let loops that run once be taken apart";
}

def Normalize : AutodiffPass<"autodiff-normalize", "::mlir::ModuleOp"> {
  let summary = "bring a kernel into the form that differentiation works on";
  let description = [{
    Inlines calls, turns unstructured control flow (an early `return`) into
    structured, lowers tensor descriptors, splits pointers that control flow
    forms, simplifies, hoists loop-invariant code, and numbers the memory
    accesses (`autodiff.site`). A while loop that counts becomes a for loop; the
    others do all their work in the body, and carry their condition and the
    number of iterations. Elements whose order Triton leaves open (`tt.cat`, a
    reshape with `allow_reorder`) get one; `autodiff.ordered` then says that the
    forward has to be derived, too, if its results depend on it. Afterwards the module holds one function whose body
    is one block.
  }];
}

def SpreadLoops : AutodiffPass<"autodiff-spread-loops", "::mlir::ModuleOp"> {
  let summary = "make iterations of a loop over the grid programs";
  let description = [{
    A kernel whose programs go through n iterations together, each starting at its
    own number with steps as long as the grid, does the same as n programs that
    each run one iteration, if no iteration needs what another one does. The
    primal becomes the kernel of these. `autodiff.launch` says how many there are,
    which numbers must not be negative for that, and what must hold of its stores:
    no two iterations may store to the same element.
  }];
}

def SinkStores : AutodiffPass<"autodiff-sink-stores", "::mlir::ModuleOp"> {
  let summary = "store once what both sides of a branch store";
  let description = [{
    Where the last thing that both sides of a branch do to memory is to store to
    the same place (a loss of zero for rows that are left out), what they store
    becomes a result of the branch, and one store follows it.
  }];
}

def FlattenReturns : AutodiffPass<"autodiff-flatten-returns", "::mlir::ModuleOp"> {
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

def BatchLoops : AutodiffPass<"autodiff-batch-loops", "::mlir::ModuleOp"> {
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

def UnravelPositions : AutodiffPass<"autodiff-unravel-positions", "::mlir::ModuleOp"> {
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
  let options = [
    ListOption<"lengths", "lengths", "int64_t", "The lengths of the axes.">,
    ListOption<"wanted", "wanted", "unsigned",
               "arguments whose gradient is asked for">,
    Option<"allWanted", "all-wanted", "bool", "true",
           "ask for every float argument that is loaded instead">
  ];
}

def UnwrapTiles : AutodiffPass<"autodiff-unwrap-tiles", "::mlir::ModuleOp"> {
  let summary = "read tiles up to the end of a tensor, not around it";
  let description = [{
    Positions modulo a length, x % M, or back from beyond it, where(x < M, x, 0),
    become x where nothing that is stored depends on the lanes x >= M, and loads
    at these leave them out. Numbers that must not be negative for this are left
    in `autodiff.assumed`.
  }];
}

def CountTrips : AutodiffPass<"autodiff-count-trips", "::mlir::ModuleOp"> {
  let summary = "derive a kernel that counts iterations";
  let description = [{
    Loops whose most iterations are not known when the kernel is launched
    (bounds loaded from memory, `scf.while`) get a counter. `@<kernel>_count`
    is what is left of the primal when it only finds, in that counter, the most
    iterations that one run of the loop has.
  }];
}

def LinkRules : AutodiffPass<"autodiff-link-rules", "::mlir::ModuleOp"> {
  let summary = "attach the derivatives that the user defines";
  let description = [{
    Inline assembly and library functions that a function with the role `rule`
    is for, and calls of `autodiff.custom_vjp` functions, become
    `autodiff.custom_vjp` operations with the user's pullback inside. Markers of
    `stop_gradient` become `autodiff.stop_gradient`.

    A rule is a function of the cotangents of the float results, the operands
    and the results, that returns a gradient for each float operand. A call of a
    function named `autodiff.custom_vjp…` has the primal results, the inputs and
    the gradients as operands; assembly named `autodiff.cotangent k` stands for
    the cotangent of its k-th result.
  }];
}

def LowerDescriptors : AutodiffPass<"autodiff-lower-descriptors", "::mlir::ModuleOp"> {
  let summary = "turn accesses through tensor descriptors into masked ones";
  let description = [{
    A descriptor becomes what it describes: base pointer, sizes, strides, and
    whether reads out of bounds give NaN. Loops may carry it and branches choose
    it. A kernel argument that is a descriptor is replaced by two, its base
    pointer and an i1 (`true`: NaN out of bounds); the sizes and strides are the
    arguments that follow it in TTIR anyway.
  }];
}

def DecomposeScaledDots : AutodiffPass<"autodiff-decompose-scaled-dots", "::mlir::triton::FuncOp"> {
  let summary = "turn microscaled matrix products into plain ones";
  let description = [{
    `tt.dot_scaled` becomes `tt.dot` of operands that are unpacked, multiplied
    by their scales and rounded to 16 bits, as Triton does it for GPUs without
    an instruction.
  }];
}

def RaiseSwaps : AutodiffPass<"autodiff-raise-swaps", "::mlir::triton::FuncOp"> {
  let summary = "recognise exchanges of elements that are made with bits";
  let description = [{
    `x ^ (x₀ ^ x₁)` along an axis of two elements becomes `autodiff.swap`. Bits
    that are moved and become a float again are moved as that float.
  }];
}

def LowerSwaps : AutodiffPass<"autodiff-lower-swaps", "::mlir::triton::FuncOp"> {
  let summary = "exchange elements by their bits again";
  let description = [{
    The inverse of autodiff-raise-swaps: GPUs do it with one shuffle.
  }];
}

def SplitPointers : AutodiffPass<"autodiff-split-pointers", "::mlir::triton::FuncOp"> {
  let summary = "carry pointers through control flow as argument and offset";
  let description = [{
    A pointer that a branch yields, or that a loop carries in another way than
    adding to it, becomes two integers: which kernel argument it is based on,
    and the offset in elements. The pointer is formed again where memory is
    accessed, by selects between the arguments. Where a loop that adds the same
    in every iteration leaves a pointer is computed without the loop.
  }];
}

def MarkResiduals : AutodiffPass<"autodiff-mark-residuals", "::mlir::triton::FuncOp"> {
  let summary = "name the values that a forward may save for its backward";
  let description = [{
    Wraps, at the kernel's outer level, what only a loop, branch, reduction or
    product can compute, what the kernel stores, and conditions that take much
    arithmetic (what a dropout keeps), in `autodiff.residual`.
  }];
}

def RescaleAccumulators : AutodiffPass<"autodiff-rescale-accumulators", "::mlir::ModuleOp"> {
  let summary = "turn rescaled accumulators (online softmax) into plain ones";
  let description = [{
    A loop that carries a running maximum m and accumulators A with
    A' = A·e^(m−m') + f(e^(x−m')) is rewritten to use the final maximum in
    every iteration. Its accumulators become plain sums, and each iteration
    stands alone. The primal stays as it is; the rewritten copy is what
    autodiff-reverse differentiates.
  }];
}

def CarrySums : AutodiffPass<"autodiff-carry-sums", "::mlir::ModuleOp"> {
  let summary = "carry plain sums in place of their means and logarithms";
  let description = [{
    Where a loop carries the logarithm of a sum, ℓ' = c + log(e^(ℓ−c) + s), or
    a sum that it divides by another one in each iteration, A' = A·(l/l') + g/l',
    the copy that is differentiated carries the sums, whose iterations stand
    alone, and takes logarithm and quotient after the loop.
  }];
}

def DropMaxima : AutodiffPass<"autodiff-drop-maxima", "::mlir::ModuleOp"> {
  let summary = "drop derivatives of maxima that the outputs do not depend on";
  let description = [{
    Where a scaling-degree analysis proves that what the kernel stores is
    unchanged by a shift of a maximum (softmax, log-sum-exp, attention), the
    maximum is marked constant.
  }];
}

def FoldNormalizers : AutodiffPass<"autodiff-fold-normalizers", "::mlir::ModuleOp"> {
  let summary = "take exponentials relative to their sum";
  let description = [{
    A maximum m that was dropped may be any value. Where a sum of exponentials
    l is relative to it, the copy that is differentiated takes L = m + log l in
    its place, for which the sum is one: one value is saved, not two, and
    e^(x−m)/l is e^(x−L).
  }];
}

def Reverse : AutodiffPass<"autodiff-reverse", "::mlir::ModuleOp"> {
  let summary = "derive the backward of a kernel";
  let description = [{
    Adds `@<kernel>_bwd`: the primal values recomputed, then the adjoint of
    every operation in reverse order. Memory is still abstract: cotangents are
    taken with `autodiff.upstream`, gradients collected with
    `autodiff.accumulate`.
  }];
  let options = [
    ListOption<"wanted", "wanted", "unsigned",
               "arguments whose gradient is asked for">,
    ListOption<"cotangents", "cotangents", "unsigned",
               "arguments whose stored content has a cotangent">,
    Option<"allWanted", "all-wanted", "bool", "true",
           "ask for every float argument that is loaded instead">,
    Option<"allCotangents", "all-cotangents", "bool", "true",
           "take every float argument that is stored to instead">
  ];
}

def Tape : AutodiffPass<"autodiff-tape", "::mlir::triton::FuncOp"> {
  let summary = "give the tapes that are read a place in memory";
  let description = [{
    Every `autodiff.pop` that is still used becomes a load from a buffer that
    the matching `autodiff.push` fills; pushes that nobody reads go.
  }];
}

def RecordMemory : AutodiffPass<"autodiff-record-memory", "::mlir::triton::FuncOp"> {
  let summary = "mark what only this run of the primal can know";
  let description = [{
    Pushes what the kernel loads from memory that it stores to itself, and what
    atomic operations return. A backward pops these instead of computing them
    again.
  }];
}

def SaveRecords : AutodiffPass<"autodiff-save-records", "::mlir::ModuleOp"> {
  let summary = "let the forward write what it records";
  let description = [{
    Every record that the backward still reads gets a buffer, which the
    augmented forward (`@<kernel>_fwd`, made if there is none) fills.
  }];
  let options = [
    Option<"allowed", "allowed", "bool", "true", "allow an augmented forward">
  ];
}

def ReadCotangents : AutodiffPass<"autodiff-read-cotangents", "::mlir::ModuleOp"> {
  let summary = "read upstream gradients where they are";
  let description = [{
    Where a kernel stores to each address of an output at most once, given a
    check that the launch evaluates, and adds nothing to its gradient,
    `autodiff.upstream` becomes a load from the caller's tensor. So it does
    where a kernel loads an argument and then overwrites every element of it:
    what it loaded is as another tensor then, and has a gradient of its own.
  }];
  let options = [
    ListOption<"exchange", "exchange", "unsigned",
               "arguments whose stored addresses may repeat">
  ];
}

def OrderLoops : AutodiffPass<"autodiff-order-loops", "::mlir::triton::FuncOp"> {
  let summary = "run loops of the backward in the forward's order";
  let description = [{
    A loop whose iterations only add to sums and to gradients gives the same in
    any order. It then counts up, as the primal's does.
  }];
}

def CountUp : AutodiffPass<"autodiff-count-up", "::mlir::ModuleOp"> {
  let summary = "let loops that go down go up";
  let description = [{
    A primal loop that counts up but uses only numbers that fall, n − 1 − i, goes
    through its memory from behind. If the backward's loops that contribute there
    may run in any order, these and the primal's let the numbers rise instead, so
    that iterations start at the same place in all programs.
  }];
}

def MergeContributions : AutodiffPass<"autodiff-merge-contributions", "::mlir::ModuleOp"> {
  let summary = "add up what goes to the same addresses";
  let description = [{
    Where a kernel loads the same elements in several loops (looped norms), the
    last loop that contributes to their gradient computes all contributions, and
    adds them up; so does the last contribution outside of loops.
  }];
}

def MergeNests : AutodiffPass<"autodiff-merge-nests", "::mlir::ModuleOp"> {
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

def MergeGathered : AutodiffPass<"autodiff-merge-gathered", "::mlir::ModuleOp"> {
  let summary = "add what is gathered where all elements are stored";
  let description = [{
    Where one load reads every element and others read some of the same row by
    an index from memory (the target of a cross-entropy, maybe only in rows that
    count), each lane of the first one whose position is an index adds what is
    contributed there. What has an index that no lane of the program stands for
    (given the mask and the range that a check on the host vouches for) is left
    to a kernel that runs afterwards, `@<kernel>_bwd_remainder`.
  }];
  let options = [
    ListOption<"atomic", "atomic", "unsigned",
               "arguments whose gradient must be accumulated atomically">
  ];
}

def GatherWindows : AutodiffPass<"autodiff-gather-windows", "::mlir::ModuleOp"> {
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

def Exchange : AutodiffPass<"autodiff-exchange", "::mlir::ModuleOp"> {
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

def FactorProducts : AutodiffPass<"autodiff-factor-products", "::mlir::triton::FuncOp"> {
  let summary = "take a common operand out of a sum of products";
  let description = [{
    Where a loop sums products of which one operand is the same in all
    iterations, it sums the other one, a small tile, and one product after the
    loop does. What is rounded to be multiplied is summed before; a sum of
    what is exact in bfloat16 is multiplied in two parts. Not in half precision,
    where the sum might be beyond the range.
  }];
}

def OrientDots : AutodiffPass<"autodiff-orient-dots", "::mlir::triton::FuncOp"> {
  let summary = "compute tiles the way that products want them";
  let description = [{
    Products take computed tiles as first operands, and tiles between products
    are computed transposed where that saves transposing them in registers.
  }];
}

def Persist : AutodiffPass<"autodiff-persist", "::mlir::ModuleOp"> {
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

def Schedule : AutodiffPass<"autodiff-schedule", "::mlir::ModuleOp"> {
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
    Option<"deterministic", "deterministic", "bool", "false",
           "refuse atomics, whose order differs from run to run">
  ];
}

def Residuals : AutodiffPass<"autodiff-residuals", "::mlir::ModuleOp"> {
  let summary = "choose what the backward reloads instead of recomputing";
  let description = [{
    A minimum cut between what memory holds and what the adjoint needs, at the
    outer level of the backward: cost is bytes moved, or that might be moved in
    the time that arithmetic takes; what only a loop, branch, reduction or
    product can compute must be saved or reloaded. The
    forward that saves is added as `@<kernel>_fwd`; values that the primal
    stores anyway are reloaded from its outputs.
  }];
  let options = [
    Option<"save", "save", "bool", "true", "allow an augmented forward">,
    Option<"reload", "reload", "bool", "true", "allow reloading stored outputs">
  ];
}

def ChooseTiles : AutodiffPass<"autodiff-choose-tiles", "::mlir::ModuleOp"> {
  let summary = "give exchanged kernels tiles that suit their products";
  let description = [{
    The forward's tiles need not suit kernels in which iterations are programs.
    Where a digit of the programs and a position in tiles form one index, a
    program does the work of several neighbours with tiles as long as theirs
    together. Where a loop sums products over tiles, it goes over them in
    shorter pieces. Longer tiles come as variants, each for launches whose
    numbers of programs it divides, and in which its loops of products run.
  }];
  let options = [
    Option<"widen", "widen", "unsigned", "4", "the largest factor; 1 for none">
  ];
}

def DivideTiles : AutodiffPass<"autodiff-divide-tiles", "::mlir::ModuleOp"> {
  let summary = "let programs go over tiles in pieces that fit";
  let description = [{
    A backward holds more tiles than the forward. Where those of a kernel without
    control flow need far more registers than there are, it goes over the longest
    axis of its tiles in pieces: once for what it stores and adds up, and again
    for what takes the sums. Where products need more shared memory than there
    is, a kernel, or the body of one of its loops, goes over one of the axes of
    their tiles in pieces: products that sum over it add up, others make parts
    of their results.
  }];
}

def TallySums : AutodiffPass<"autodiff-tally-sums", "::mlir::ModuleOp"> {
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

def LaunchOptions : AutodiffPass<"autodiff-launch-options", "::mlir::triton::FuncOp"> {
  let summary = "choose the warps and stages that tiles need";
  let description = [{
    For loops of products as many warps as the tiles between products need
    registers, and as many pipeline stages as shared memory holds. Other kernels
    are launched like the forward, but with warps enough for the tiles that are
    live at a time; with no more if few programs do the work of many in a loop.
  }];
}

def PipelineLoads : AutodiffPass<"autodiff-pipeline-loads", "::mlir::triton::FuncOp"> {
  let summary = "let loops without products read ahead";
  let description = [{
    Triton pipelines the loads of a loop without products where `tt.num_stages`
    asks for it. Loops get it that neither write what they read nor contain
    others, with stages for as many bytes as hide the latency of memory.
  }];
}

def PowersOfTwo : AutodiffPass<"autodiff-powers-of-two", "::mlir::triton::FuncOp"> {
  let summary = "compute exponentials relative to a row's number as powers of two";
  let description = [{
    In backward kernels e^(x−m) of tiles in float32, with an m that is repeated
    along an axis, becomes 2^((x−m)·log₂e), which takes fewer instructions.
    Exponentials that something is compared with stay as they are.
  }];
}

def LoadEarly : AutodiffPass<"autodiff-load-early", "::mlir::triton::FuncOp"> {
  let summary = "load before the reductions that a load need not wait for";
  let description = [{
    Loads at the outer level of a backward kernel that depend on no result of a
    reduction or scan go to before it, with what computes their addresses and
    masks. They stay behind what may write to memory, and behind loops and
    branches, during which registers would hold what was loaded.
  }];
}

def SumRuns : AutodiffPass<"autodiff-sum-runs", "::mlir::triton::FuncOp"> {
  let summary = "add at once what neighbours in a tile add to an address";
  let description = [{
    Where an address only depends on the quotient of a position (the channel of a
    pixel), neighbours share it. If a tile has few quotients, which the program
    looks at, the lanes of each are summed, and added once.
  }];
}

def DeferReductions : AutodiffPass<"autodiff-defer-reductions", "::mlir::triton::FuncOp"> {
  let summary = "sum along axes after a loop, not in each of its iterations";
  let description = [{
    Σᵢ sum(tᵢ) = sum(Σᵢ tᵢ): a loop that adds up sums along an axis of tiles
    carries the sum of the tiles, if there are registers for it.
  }];
}

def SplitMasks : AutodiffPass<"autodiff-split-masks", "::mlir::triton::FuncOp"> {
  let summary = "divide loops of products where masks begin or cease to hold";
  let description = [{
    A selection by a comparison of the induction variable with the lanes of a
    tile (causal masks, windows, tails) takes everything in all iterations from
    one on, or below one. The loop becomes two or three, of which one does
    without the comparison.
  }];
}

def RenewSums : AutodiffPass<"autodiff-renew-sums", "::mlir::triton::FuncOp"> {
  let summary = "let matrix instructions overlap in loops that may not run";
  let description = [{
    A loop that sums products gets a branch that is taken if it runs. One that
    goes on with what such a branch has left starts from it plus a zero that
    the compiler does not know.
  }];
}

def Sizes : AutodiffPass<"autodiff-sizes", "::mlir::ModuleOp"> {
  let summary = "hand kernels the sizes that the host knows";
  let description = [{
    `autodiff.size` becomes an argument. Counters that no size depends on go,
    and with the last one the counting kernel.
  }];
}

def Simplify : AutodiffPass<"autodiff-simplify", "::mlir::triton::FuncOp"> {
  let summary = "fold what differentiation leaves behind";
  let description = [{
    Common factors are taken out of sums, loops and branches, sums of one
    element become reshapes, loop results that nobody uses go.
  }];
}

def CheckBounds : AutodiffPass<"autodiff-check-bounds", "::mlir::triton::FuncOp"> {
  let summary = "check every access of a derived kernel";
  let description = [{
    For debugging. Every pointer argument gets two more, the addresses between
    which its memory lies. Lanes of loads, stores and atomics that go outside
    are switched off, and the first such access is noted in a buffer of
    violations, by its number in `autodiff.accesses`.
  }];
}

#endif // AUTODIFF_PASSES
