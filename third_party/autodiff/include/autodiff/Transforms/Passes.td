//===- Passes.td - From a primal kernel to its backward -----*- tablegen -*-===//
#ifndef AUTODIFF_PASSES
#define AUTODIFF_PASSES

include "mlir/Pass/PassBase.td"

// A pass that says what it needs of a module (Needs.h), `Need`s by name: where
// one is missing, it is an error that names it.
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

// The needs of passes that rewrite the kernel, of those that rewrite the copy
// that is differentiated, and of those that look at what is derived.
defvar RewritesKernel = ["Kernel", "OneBlock", "Underived"];
defvar RewritesCopy = ["Kernel", "OneBlock", "Unreversed"];
defvar LooksAtBackward = ["Kernel", "OneBlock", "Backward"];
defvar LooksAtOneBackward = !listconcat(LooksAtBackward, ["OneBackward"]);

// What several passes are told of the launch.
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
include "autodiff/Transforms/Schedule.td"
include "autodiff/Transforms/Tiles.td"
include "autodiff/Transforms/Simplify.td"

#endif // AUTODIFF_PASSES
