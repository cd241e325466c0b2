//===- Normalize.td - One form of control flow and memory --*- tablegen -*-===//

def HoldLoops : AutodiffPass<"autodiff-hold-loops", "::mlir::triton::FuncOp"> {
  let summary = "keep loops that run once beside others like them";
  let description = [{
    In causal attention, the loop over the block on the diagonal runs once, and
    starts at a place that depends on the program. Where another loop has the
    same steps, the end of this one is hidden behind `autodiff.held`, so that
    canonicalization does not unroll it. Both loops then load the same addresses
    in the same iterations, and autodiff-interchange can add up what they
    contribute there.
  }];
}

def ReleaseLoops : AutodiffPass<"autodiff-release-loops", "::mlir::triton::FuncOp"> {
  let summary = "let loops that run once be taken apart";
}

def Normalize : AutodiffPass<"autodiff-normalize", "::mlir::ModuleOp", ["Kernel", "Underived"]> {
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

def AdoptKernel : AutodiffPass<"autodiff-adopt-kernel", "::mlir::ModuleOp"> {
  let summary = "make a derived kernel the one to differentiate";
  let description = [{
    All other functions are removed, and so are the attributes that passes have
    set. The kernel has to consist of Triton's own operations.
  }];
  let options = [
    Option<"kernel", "kernel", "std::string", "",
           "its name; otherwise the only backward kernel">
  ];
}

def CountTrips : AutodiffPass<"autodiff-count-trips", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "derive a kernel that counts iterations";
  let description = [{
    A loop may have bounds that nobody knows at launch: they are loaded from
    memory, or it is an `scf.while`. Such a loop gets a counter.
    `@<kernel>_count` is the part of the forward that computes the trip counts;
    it stores in the counter the most iterations of any run of the loop.
  }];
}

def LinkRules : AutodiffPass<"autodiff-link-rules", "::mlir::ModuleOp", ["Kernel", "Underived"]> {
  let summary = "attach the derivatives that the user defines";
  let description = [{
    Users may define the derivative of inline assembly and of library functions
    (a function with the role `rule`), or of a function of their own
    (`autodiff.custom_vjp`). Such assembly and calls become
    `autodiff.custom_vjp` operations with the user's pullback as a region, and
    the pushforward as another one.
    Markers of `stop_gradient` become `autodiff.stop_gradient`, and so do those
    of arguments `inside` of the user's functions, for first derivatives.

    A rule is a function of the cotangents of the float results, the operands
    and the results. It returns a gradient for each float operand. A rule with
    `autodiff.rule_forward` has the tangents of the float operands instead, and
    returns one for each float result. A call of a function named
    `autodiff.custom_vjp…` has the results, the inputs and the gradients as
    operands, one of `autodiff.custom_jvp…` or `autodiff.custom_exact…` the
    tangents of the results, too. Assembly named `autodiff.cotangent k` stands
    for the cotangent of its k-th result, `autodiff.tangent k` for the tangent
    of its k-th input.
  }];
  let options = [
    Option<"forward", "forward", "bool", "false",
           "attach pushforwards, too">,
    Option<"again", "again", "bool", "false",
           "what is derived is differentiated again">
  ];
}

def MarkHistory : AutodiffPass<"autodiff-mark-history", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "note which inputs' floats reach which outputs";
  let description = [{
    In PyTorch, a tensor has a history if floats of a tensor with a history
    reach it other than through comparisons and integers. `autodiff.history`
    says so of what the kernel stores. It is about the kernel as the user wrote
    it: later passes drop terms that are zero, such as 0·x, which has a history.
  }];
}

def ForwardStores : AutodiffPass<"autodiff-forward-stores", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "forward stored values to loads of the same pointers";
  let description = [{
    A load behind a store to the same pointers is replaced by the stored value
    (a scratch tensor that takes a vector to another layout). It has to hold
    that nothing that may write there is between them, that the lanes have
    distinct addresses, and that the masks are the same, if the store has one.
    The store stays. Programs are assumed not to write to each other's elements.
    A kernel whose programs wait for one another is left alone.
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
  let summary = "recognise swaps of elements that are made with bits";
  let description = [{
    Where values are moved as bits between bitcasts from and to a float type,
    the floats are moved instead.
  }];
}

def RaiseBits : AutodiffPass<"autodiff-raise-bits", "::mlir::triton::FuncOp"> {
  let summary = "recognise floats that are made of the bits of floats";
  let description = [{
    Arithmetic on bits is read as a function of bits. A cast to a float is
    replaced if its bits are those of floats: chosen by conditions, negated, with
    another sign, exchanged with those of other elements, packed into longer
    integers and taken out again. Where bits are dropped or cleared, the cast
    has the derivative of a rounding. A cast that is none of that keeps the
    reason as an attribute, for the error that it is if a derivative would have
    to go through it.
  }];
}

def LowerSwaps : AutodiffPass<"autodiff-lower-swaps", "::mlir::triton::FuncOp"> {
  let summary = "swap elements by their bits again";
  let description = [{
    The inverse of autodiff-raise-swaps. GPUs swap the bits with one shuffle.
  }];
}

def SplitPointers : AutodiffPass<"autodiff-split-pointers", "::mlir::triton::FuncOp"> {
  let summary = "carry pointers through control flow as argument and offset";
  let description = [{
    A branch may yield a pointer, and a loop may carry one in another way than
    adding to it. Such a pointer becomes two integers: the number of the kernel
    argument that it points into, and the offset in elements. Selects between
    the arguments make the pointer again where memory is accessed. If a loop
    adds the same in each iteration, the pointer behind the loop is computed
    without the loop.
  }];
}
