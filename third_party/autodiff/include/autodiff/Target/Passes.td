//===- Passes.td - What a device and Triton's passes take ---*- tablegen -*-===//
#ifndef AUTODIFF_TARGET_PASSES_TD
#define AUTODIFF_TARGET_PASSES_TD

include "mlir/Pass/PassBase.td"

class TargetPass<string argument, string operation> : Pass<argument, operation> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::scf::SCFDialect", "::mlir::triton::TritonDialect",
    "::mlir::triton::gpu::TritonGPUDialect"
  ];
}

def MarkMiscomputed : TargetPass<"autodiff-mark-miscomputed", "::mlir::triton::FuncOp"> {
  let summary = "find products of the primal that Triton gets wrong";
  let description = [{
    Up to Triton 3.7, `triton-combine` makes products in TF32 of sums, also where
    these are shorter than what a matrix instruction sums. In all versions, sums
    of `tl.dot` may be too short for operands that come of narrower elements in
    memory. Such products are marked (`autodiff.miscomputed`), and the forward is
    to be derived, too.
  }];
}

def FitProducts : TargetPass<"autodiff-fit-products", "::mlir::triton::FuncOp"> {
  let summary = "give derived kernels products that the matrix unit takes";
  let description = [{
    A product over fewer elements than a matrix instruction takes becomes one of
    float32 without the matrix unit or, where it is large or in float64, one
    over more elements, with zeros between those that there are. A sum that
    Triton's own passes would take for a product in TF32 becomes one of float32,
    or gets its factors in the other order.
  }];
  let options = [
    Option<"mostMultiplyAdds", "most-multiply-adds", "int64_t", "-1",
           "those of the largest product that does without the matrix unit; as "
           "many as pay on the target, if negative">
  ];
}

def PlaceMaxima : TargetPass<"autodiff-place-maxima", "::mlir::triton::FuncOp"> {
  let summary = "look for a maximum of sums by its place, not by its value";
  let description = [{
    Triton may compute a tile for two layouts, each of which sums in an order of
    its own. Where a maximum of such a tile is compared with its elements, as for
    its gradient, the comparison is of their places instead: of equal elements,
    the first one counts.
  }];
}

def UnifyCopies : TargetPass<"autodiff-unify-copies", "::mlir::triton::FuncOp"> {
  let summary = "give all threads the same sum where one is looked for";
  let description = [{
    Several threads have what a reduction of Triton's results in, and as GPUs
    contract products with sums, these copies may differ in the last bit. Where
    something that a sum went into is compared with what was chosen from it, as
    for the gradient of a maximum, all threads take the copy of the first lane.
  }];
}

def LowerBarriers : TargetPass<"autodiff-lower-barriers", "::mlir::ModuleOp"> {
  let summary = "write barriers so that Triton orders all accesses by them";
  let description = [{
    Triton from 3.7 on pipelines loads across `gpu.barrier`, and not across
    `ttg.barrier`, which earlier ones do not know. Neither waits for other CTAs of
    a cluster, so that kernels with barriers are compiled for one.
  }];
  let options = [
    Option<"own", "own", "bool", "false", "use Triton's own `ttg.barrier`">
  ];
}

def VerifyTarget : TargetPass<"autodiff-verify-target", "::mlir::ModuleOp"> {
  let summary = "refuse kernels that a device does not take";
  let description = [{
    Products over fewer elements than a matrix instruction takes, sums that
    Triton would take for products, tiles and numbers of warps beyond the
    limits are internal errors. In a module without derived kernels, all
    functions are examined: so it is with what Triton's passes have left of one,
    of which the shared memory is known, too.
  }];
  let options = [
    Option<"target", "target", "std::string", "",
           "the device; that of the module without it">,
    Option<"sharedMemory", "shared-memory", "int64_t", "0",
           "bytes that Triton has given a program">
  ];
}

def LoopBranches : TargetPass<"autodiff-loop-branches", "::mlir::triton::FuncOp"> {
  let summary = "make loops of no or one iteration of branches that multiply";
  let description = [{
    Triton moves conversions of layouts into branches of which one side
    multiplies and the other does little, and its passes may fail then. It moves
    none into loops. This is for kernels that it has rejected: what is the same in
    all iterations, it computes whether there is one or not.
  }];
}

def ReduceColumns : TargetPass<"autodiff-reduce-columns", "::mlir::triton::FuncOp"> {
  let summary = "reduce to scalars what has a second axis, of one element";
  let description = [{
    For Blackwell, Triton 3.6 looks through reductions for layouts of what a
    product is computed in, and ends where one of a single axis results in a
    scalar. This is for kernels that it has rejected.
  }];
}

#endif // AUTODIFF_TARGET_PASSES_TD
