//===- Passes.td - From a primal kernel to its backward -----*- tablegen -*-===//
#ifndef AUTODIFF_PASSES
#define AUTODIFF_PASSES

include "mlir/Pass/PassBase.td"

// A pass that names its needs, the `Need`s of Needs.h, as strings. A missing
// one is an error that says which pass provides it.
class AutodiffPass<string argument, string operation, list<string> needs = []>
    : PassBase<argument, !if(!empty(needs),
        "::mlir::OperationPass<" # operation # ">",
        "::mlir::autodiff::NeedyPass<" # !interleave(
            !foreach(need, needs, "::mlir::autodiff::Need::" # need), ", ") # ">")> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::autodiff::AutodiffDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::triton::TritonDialect",
    "::mlir::ub::UBDialect"
  ];
}

// Needs of three kinds of passes: those that rewrite the kernel, those that
// rewrite the copy that is differentiated, and those that look at derived
// kernels.
defvar RewritesKernel = ["Kernel", "OneBlock", "Underived"];
defvar RewritesCopy = ["Kernel", "OneBlock", "Unreversed"];
defvar LooksAtBackward = ["Kernel", "OneBlock", "Backward"];
defvar LooksAtOneBackward = !listconcat(LooksAtBackward, ["OneBackward"]);

// Options that tell a pass about the launch.
defvar WantedOptions = [
    ListOption<"wanted", "wanted", "unsigned",
               "arguments whose gradient is asked for">,
    Option<"allWanted", "all-wanted", "bool", "true",
           "ask for every float argument that is loaded instead">
];
defvar CotangentOptions = [
    ListOption<"cotangents", "cotangents", "unsigned",
               "arguments whose stored content has a cotangent">,
    Option<"allCotangents", "all-cotangents", "bool", "true",
           "take every float argument that is stored to instead">
];
defvar AssumeOptions = [
    Option<"assume", "assume", "bool", "true",
           "take strides of a launch not to be negative">
];
defvar RepeatedOptions = [
    ListOption<"repeated", "repeated", "unsigned",
               "arguments whose elements may be stored to twice">
];

include "autodiff/Transforms/Normalize.td"
include "autodiff/Transforms/Programs.td"
include "autodiff/Transforms/Softmax.td"
include "autodiff/Transforms/Reverse.td"
include "autodiff/Transforms/Function.td"
include "autodiff/Transforms/Merge.td"
include "autodiff/Transforms/Contributions.td"
include "autodiff/Transforms/Tiles.td"
include "autodiff/Transforms/Simplify.td"

#endif // AUTODIFF_PASSES
