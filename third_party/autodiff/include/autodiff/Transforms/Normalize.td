//===- Normalize.td - One form of control flow and memory --*- tablegen -*-===//

def HoldLoops : AutodiffPass<"autodiff-hold-loops", "::mlir::triton::FuncOp"> {
  let summary = "keep loops that run once beside others like them";
  let description = [{
    Where a program's loop goes through one block, from a place of the program's
    own on (the diagonal of causal attention), and another loop has such steps,
    too, its end is `autodiff.held`. Both then load the same places in the same
    iterations, whoever runs these, and autodiff-interchange adds up what they
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
    Everything else goes, and so does what passes have noted. The kernel has to
    be lowered to Triton's own operations.
  }];
  let options = [
    Option<"kernel", "kernel", "std::string", "",
           "its name; otherwise the only backward kernel">
  ];
}

def CountTrips : AutodiffPass<"autodiff-count-trips", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "derive a kernel that counts iterations";
  let description = [{
    Loops whose most iterations are not known when the kernel is launched
    (bounds loaded from memory, `scf.while`) get a counter. `@<kernel>_count`
    is what is left of the primal when it only finds, in that counter, the most
    iterations that one run of the loop has.
  }];
}

def LinkRules : AutodiffPass<"autodiff-link-rules", "::mlir::ModuleOp", ["Kernel", "Underived"]> {
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

def ForwardStores : AutodiffPass<"autodiff-forward-stores", "::mlir::ModuleOp", RewritesKernel> {
  let summary = "hand on what is loaded from where it was just stored";
  let description = [{
    A load behind a store to the same pointers gives what was stored, if nothing
    that may write there is between them, the lanes are elements of their own,
    and a mask of the store is that of the load (a scratch tensor that takes a
    vector to another layout). The store stays. Programs are taken to write to
    elements of their own; where they wait for one another, nothing is done.
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
    `x ^ (x₀ ^ x₁)` along an axis of two elements becomes `autodiff.swap`. Bits
    that are moved and become a float again are moved as that float.
  }];
}

def LowerSwaps : AutodiffPass<"autodiff-lower-swaps", "::mlir::triton::FuncOp"> {
  let summary = "swap elements by their bits again";
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
