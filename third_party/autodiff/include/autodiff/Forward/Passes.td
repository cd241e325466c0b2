//===- Passes.td - Tangents beside values ------------------*- tablegen -*-===//
#ifndef AUTODIFF_FORWARD_PASSES_TD
#define AUTODIFF_FORWARD_PASSES_TD

include "mlir/Pass/PassBase.td"

def PushTangents : Pass<"autodiff-push-tangents", "::mlir::ModuleOp"> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::autodiff::AutodiffDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::triton::TritonDialect"
  ];
  let summary = "derive a kernel that computes tangents beside its values";
  let description = [{
    Forward mode. Adds `@<kernel>_jvp`, which does what the kernel does and also
    pushes tangents of the wanted arguments forward to what it stores. Behind
    the kernel's arguments it has a pointer to tangents, addressed like the
    argument, for each argument that is wanted, is an output, or is stored to
    and loaded from again with a derivative. Where the kernel chooses a pointer
    among several arguments, all have tangents if one has. `autodiff.tangent` is
    that argument's number.
  }];
  let options = [
    ListOption<"wanted", "wanted", "unsigned",
               "arguments that have tangents">,
    Option<"allWanted", "all-wanted", "bool", "true",
           "take every float argument that is loaded instead">,
    ListOption<"outputs", "outputs", "unsigned",
               "arguments whose stored content gets tangents">,
    Option<"allOutputs", "all-outputs", "bool", "true",
           "take every float argument that is stored to instead">,
    ListOption<"unread", "unread", "unsigned",
               "arguments to whose memory nothing has to be stored">,
    ListOption<"taken", "taken", "unsigned",
               "arguments from which exchanges with zero take what is there: "
               "whichever program does, the result is the same">,
    Option<"later", "later", "bool", "false",
           "leave tangents of what atomic maxima, minima and exchanges leave to "
           "a kernel that runs afterwards">
  ];
}

def SettleAtomics : Pass<"autodiff-settle-atomics", "::mlir::ModuleOp"> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::triton::TritonDialect"
  ];
  let summary = "store again what atomic maxima, minima and exchanges have left";
  let description = [{
    Which program's value an atomic maximum, minimum or exchange leaves in
    memory is known when all have run. Makes of a kernel the one that runs then:
    it stores each value where memory holds it already, and does nothing else.
    The tangents of what it stores are those of what the atomic operations have
    left. It is an error if the kernel has changed what it would load, or if a
    value may be rounded otherwise when it is computed again.
  }];
}

def DropCarries : Pass<"autodiff-drop-carries", "::mlir::triton::FuncOp"> {
  let summary = "drop what loops carry for nobody";
  let description = [{
    A value that a loop carries only to compute the next one, such as a sum of
    which only the tangent is stored, stays as it is: then it folds away.
  }];
}

def ExtendLate : Pass<"autodiff-extend-late", "::mlir::triton::FuncOp"> {
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let summary = "move tiles in the narrow type that they are extended from";
  let description = [{
    Elements are moved, and chosen by a mask, first, and then extended. So an
    extension meets the rounding that a product begins with, and both go.
  }];
}

def ReduceTogether : Pass<"autodiff-reduce-together", "::mlir::triton::FuncOp"> {
  let dependentDialects = ["::mlir::triton::TritonDialect"];
  let summary = "make one reduction of a value's and its tangent's";
  let description = [{
    Two reductions along the same axis of tiles of the same shape, of which
    neither waits for the other, become one with the results of both: a program's
    warps wait for each other once. In kernels with products nothing is done. It
    is for kernels that are not differentiated again, since rules know sums by
    their one operand.
  }];
}

def MergeFactors : Pass<"autodiff-merge-factors", "::mlir::triton::FuncOp"> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::triton::TritonDialect"
  ];
  let summary = "multiply by fewer factors";
  let description = [{
    In a product of three or more tiles, a constant becomes a factor of what
    another tile is computed of, where that takes no operation on whole tiles.
    The results are rounded otherwise.
  }];
}

def SplitSums : Pass<"autodiff-split-sums", "::mlir::triton::FuncOp"> {
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let summary = "add up two products of an iteration in tiles of their own";
  let description = [{
    A loop that adds two products to a tile, one after the other, carries two
    tiles, and adds them up in the end: no product waits for the other. That
    takes registers.
  }];
}

def ReuseOutputs : Pass<"autodiff-reuse-outputs", "::mlir::triton::FuncOp"> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::triton::TritonDialect"
  ];
  let summary = "read what an equal launch has stored, in place of its products";
  let description = [{
    The kernel ran before, on the same inputs, and its outputs are still there:
    those of `left` are not stored again, and have `autodiff.left` then. A value
    among them that is a factor of tangents is loaded, if some product is not
    computed then. It may have been rounded when it was stored, to bfloat16; so
    has what tangents are stored in.
  }];
  let options = [
    ListOption<"left", "left", "unsigned",
               "arguments that hold what the kernel stores to them">
  ];
}

def WriteMarkers : Pass<"autodiff-write-markers", "::mlir::ModuleOp"> {
  let dependentDialects = ["::mlir::triton::TritonDialect"];
  let summary = "say in Triton's own operations what must not be differentiated";
  let description = [{
    A kernel that has tangents is differentiated again for second derivatives.
    `autodiff.stop_gradient` stops these, too: it becomes inline assembly that
    is just a comment, as Triton's tracer leaves it. So does `autodiff.once` in
    place of a function with a derivative of its own. With `calls`, it is a call
    that has the function's inputs, too; if the derivative is exact, one as
    Triton's tracer leaves it.
  }];
  let options = [
    Option<"calls", "calls", "bool", "false",
           "leave calls, which nobody can launch">
  ];
}

def DropRules : Pass<"autodiff-drop-rules", "::mlir::ModuleOp"> {
  let summary = "part the kernel that is launched from the one to differentiate";
  let description = [{
    A kernel with tangents calls functions that are only declared, where a user
    defines a derivative. It gets a copy with the role `rules`, which is there
    to be differentiated. In the kernel, the function's results take the place
    of those of the call.
  }];
}

#endif // AUTODIFF_FORWARD_PASSES_TD
