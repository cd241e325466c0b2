//===- Tiles.td - What a program does with tiles -----------*- tablegen -*-===//

def FactorProducts : AutodiffPass<"autodiff-factor-products", "::mlir::triton::FuncOp"> {
  let summary = "take a common operand out of a sum of products";
  let description = [{
    A loop that sums products with an operand B that is the same in all
    iterations, Σ AᵢB, sums Aᵢ instead, a small tile, and multiplies by B once
    after the loop. Aᵢ is summed before it is rounded to B's type. If the Aᵢ
    were exact in bfloat16, their sum is multiplied in two bfloat16 parts. This
    is not done in half precision, where the sum might overflow.
  }];
}

def OrientDots : AutodiffPass<"autodiff-orient-dots", "::mlir::triton::FuncOp"> {
  let summary = "compute tiles in the layout that products want";
  let description = [{
    A tile that is computed becomes the first operand of a product. A tile
    between two products is computed transposed where that saves a transposition
    in registers.
  }];
}

def ChooseTiles : AutodiffPass<"autodiff-choose-tiles", "::mlir::ModuleOp"> {
  let summary = "give interchanged kernels tiles that suit their products";
  let description = [{
    In an interchanged kernel, iterations of the forward's loop are programs,
    and the forward's tile sizes need not suit it. If an index is made of a
    program's number and a position in a tile, `pid * 64 + lane`, one program
    does the work of several neighbours with a longer tile. If a loop sums
    products over a tile's axis, it goes over that axis in shorter pieces.
    Longer tiles are variants: kernels for launches whose numbers of programs
    they divide, and in which the loops of products run.
  }];
  let options = [
    Option<"widen", "widen", "unsigned", "4", "the largest factor; 1 for none">
  ];
}

def DivideTiles : AutodiffPass<"autodiff-divide-tiles", "::mlir::ModuleOp"> {
  let summary = "let programs go over tiles in pieces that fit";
  let description = [{
    A backward has more live tiles than the forward. If those of a kernel
    without control flow need far more registers than there are, it goes over
    the longest axis of its tiles in pieces: once for what it stores and sums
    up, and again for what uses the sums. If products need more shared memory
    than there is, a kernel, or the body of one of its loops, goes over one axis
    of their tiles in pieces: products that sum over the axis are added up, and
    others compute parts of their results. If one axis is not enough, pieces are
    divided again.
  }];
}

def OrderProducts : AutodiffPass<"autodiff-order-products", "::mlir::triton::FuncOp"> {
  let summary = "compute products in an order that saves shared memory";
  let description = [{
    If the products of a kernel need more shared memory than there is, a product
    is moved up to where its operands are computed, or down to where its result
    is used, if that saves memory: its operands are then not in shared memory at
    the same time as those of other products.
  }];
}

def ChooseOptions : AutodiffPass<"autodiff-choose-options", "::mlir::ModuleOp"> {
  let summary = "choose the warps and stages that tiles need";
  let description = [{
    A loop of products gets as many warps as have registers for the tiles
    between products, and as many pipeline stages as fit into shared memory.
    Other kernels get the forward's options, but enough warps for the tiles that
    are live at a time; no more than the forward if few programs do the work of
    many in a loop.
  }];
}

def PipelineLoads : AutodiffPass<"autodiff-pipeline-loads", "::mlir::triton::FuncOp"> {
  let summary = "let loops without products read ahead";
  let description = [{
    Triton pipelines the loads of a loop without products only if
    `tt.num_stages` asks for it. Innermost loops that do not write what they
    read get the attribute, with enough stages for the bytes in flight to hide
    the latency of memory.
  }];
}

def UsePowersOfTwo : AutodiffPass<"autodiff-use-powers-of-two", "::mlir::triton::FuncOp"> {
  let summary = "compute exponentials relative to a row's number as powers of two";
  let description = [{
    In backward kernels, e^(x−m) of float32 tiles, with an m that is broadcast
    along an axis, becomes 2^((x−m)·log₂e), which takes fewer instructions.
    Exponentials that are compared with something stay as they are, since bits
    matter there.
  }];
}

def LoadEarly : AutodiffPass<"autodiff-load-early", "::mlir::triton::FuncOp"> {
  let summary = "hoist loads above reductions that they do not depend on";
  let description = [{
    In the outermost block of a backward kernel, loads that do not depend on a
    reduction or scan move above it, with the operations that compute their
    addresses and masks. They do not move above operations that may write to
    memory, nor above loops and branches, which would have to keep the loaded
    values in registers.
  }];
}

def LoadLate : AutodiffPass<"autodiff-load-late", "::mlir::triton::FuncOp"> {
  let summary = "move loads down to what needs them";
  let description = [{
    Loads, and tiles that are made of loaded ones alone, move down to their
    first use in the same block, but not past operations that may write to
    memory. So tiles of several products are not in shared memory at the same
    time. It is for kernels that do not fit on the device otherwise, since
    nothing else is done while such a load is waited for.
  }];
}

def SumRuns : AutodiffPass<"autodiff-sum-runs", "::mlir::triton::FuncOp"> {
  let summary = "sum lanes of a tile that add to the same address";
  let description = [{
    An address may depend on a position only through its quotient, `p[i //
    pixels]` (the channel of a pixel). Neighbouring lanes then have the same
    address. If a tile has few distinct quotients, as the program finds out when
    it runs, the lanes of each are summed, and added once.
  }];
}

def DeferReductions : AutodiffPass<"autodiff-defer-reductions", "::mlir::triton::FuncOp"> {
  let summary = "sum along axes after a loop, not in each of its iterations";
  let description = [{
    Σᵢ sum(tᵢ) = sum(Σᵢ tᵢ): a loop that adds up reductions of tiles carries the
    sum of the tiles instead, if there are registers for it. The reduction is
    done once, after the loop.
  }];
}

def SplitMasks : AutodiffPass<"autodiff-split-masks", "::mlir::triton::FuncOp"> {
  let summary = "divide loops of products where masks begin or cease to hold";
  let description = [{
    A selection may compare the induction variable with the lanes of a tile
    (causal masks, windows, tails). From some iteration on, or below one, the
    condition is true in all lanes. The loop is split there into two or three,
    and one of them does without the comparison.
  }];
}

def RenewSums : AutodiffPass<"autodiff-renew-sums", "::mlir::triton::FuncOp"> {
  let summary = "let matrix instructions overlap in loops that may not run";
  let description = [{
    A loop that sums products is put into a branch that is taken if the loop
    runs. If a loop continues a sum that such a branch yields, it starts from
    that plus a zero that the compiler does not recognise as one.
    Fault: serialized-products.
  }];
}

def CheckBounds : AutodiffPass<"autodiff-check-bounds", "::mlir::ModuleOp"> {
  let summary = "check every access of a derived kernel";
  let description = [{
    For debugging. Every pointer argument gets two more arguments, the addresses
    between which its memory lies. Lanes of loads, stores and atomics that are
    outside are masked, and a buffer of violations gets the first of them, by
    its number in the `accesses` of its launch. In a forward, the program that
    stores to an element of an output also notes, in a second buffer, that it
    did, and the bits. The first race is noted there: an element to which
    another program, or another lane at the same time, has stored other bits.
  }];
}
