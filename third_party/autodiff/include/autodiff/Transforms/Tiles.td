//===- Tiles.td - What a program does with tiles -----------*- tablegen -*-===//

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

def ChooseTiles : AutodiffPass<"autodiff-choose-tiles", "::mlir::ModuleOp"> {
  let summary = "give interchanged kernels tiles that suit their products";
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
    of their results. Where one axis is not enough, pieces are divided again.
  }];
}

def OrderProducts : AutodiffPass<"autodiff-order-products", "::mlir::triton::FuncOp"> {
  let summary = "compute products in an order that saves shared memory";
  let description = [{
    Where the products of a kernel need more shared memory than there is, one
    comes as soon as its operands are there, or waits until its result is
    needed, if that saves some: its operands do not lie beside those of others.
  }];
}

def LaunchOptions : AutodiffPass<"autodiff-launch-options", "::mlir::ModuleOp"> {
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

def CheckBounds : AutodiffPass<"autodiff-check-bounds", "::mlir::ModuleOp"> {
  let summary = "check every access of a derived kernel";
  let description = [{
    For debugging. Every pointer argument gets two more, the addresses between
    which its memory lies. Lanes of loads, stores and atomics that go outside
    are switched off, and the first such access is noted in a buffer of
    violations, by its number in the `accesses` of its launch. In a forward, each element
    of an output is claimed, with the bits that are stored, by the program that
    stores to it; there, the first race is noted: an element that another program
    has claimed, or another lane at the same time, with other bits.
  }];
}
