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
    Up to Triton 3.7, `triton-combine` turns sums into TF32 products, also where
    they are shorter than a matrix instruction sums. In all versions, `tl.dot`
    may sum over too few elements if operands come from narrower elements in
    memory. Such products are marked (`autodiff.miscomputed`), and a correct
    forward is derived, too.
    Fault: sums-as-products. Fault: short-products.
  }];
}

def FitProducts : TargetPass<"autodiff-fit-products", "::mlir::triton::FuncOp"> {
  let summary = "give derived kernels products that the matrix unit takes";
  let description = [{
    A product that sums over fewer elements than a matrix instruction takes
    becomes a float32 product without the matrix unit. If it is large, or in
    float64, it is padded with zeros between its elements instead. A sum that
    Triton's passes would turn into a TF32 product becomes a float32 product, or
    its factors are swapped.
    Fault: sums-as-products. Fault: short-products.
  }];
  let options = [
    Option<"mostMultiplyAdds", "most-multiply-adds", "int64_t", "-1",
           "those of the largest product that does without the matrix unit; as "
           "many as pay on the target, if negative">
  ];
}

def PlaceMaxima : TargetPass<"autodiff-place-maxima", "::mlir::triton::FuncOp"> {
  let summary = "compare positions of a maximum of sums, not values";
  let description = [{
    Triton may compute a tile in two layouts, which sum in different orders.
    Where a maximum of such a tile is compared with its elements, as for its
    gradient, positions are compared instead: of equal elements, the first one
    counts.
    Fault: differing-copies.
  }];
}

def UnifyCopies : TargetPass<"autodiff-unify-copies", "::mlir::triton::FuncOp"> {
  let summary = "make all threads agree on a sum that is compared";
  let description = [{
    Several threads hold the result of a reduction. As GPUs fuse multiply-adds,
    these copies may differ in the last bit. Where a value that depends on a sum
    is compared with what was chosen from it, as for the gradient of a maximum,
    all threads take the copy of the first lane.
    Fault: differing-copies.
  }];
}

def HideNarrowLoads : TargetPass<"autodiff-hide-narrow-loads", "::mlir::triton::FuncOp"> {
  let summary = "hide from Triton that float64 operands come of narrow elements";
  let description = [{
    Before 3.9, Triton fails where an operand of a float64 product is computed
    from elements of at most 16 bits in memory, masks included, or of 32 bits
    and of a tile that is joined of two. Behind a reduction over one element,
    Triton does not see these. Cleanup removes such reductions, so this comes
    after it.
    Fault: narrow-double-operands.
  }];
}

def KeepOrder : TargetPass<"autodiff-keep-order", "::mlir::triton::FuncOp"> {
  let summary = "keep Triton from reordering tiles whose order counts";
  let description = [{
    If all that uses a reshaped tile of one axis are reductions and histograms,
    `triton-combine` lets its elements be in any order, also where an arg-max
    has indices beside them, or a histogram has a mask. An arg-max reduces a
    column then, and a histogram is of selected elements.
    Fault: reordered-pairs.
  }];
}

def LowerBarriers : TargetPass<"autodiff-lower-barriers", "::mlir::ModuleOp"> {
  let summary = "write barriers so that Triton orders all accesses by them";
  let description = [{
    Triton from 3.7 on moves loads across `gpu.barrier`, but not across
    `ttg.barrier`, which earlier versions do not have. Neither waits for other
    CTAs of a cluster, so kernels with barriers are compiled for clusters of
    one.
    Fault: missing-barriers.
  }];
  let options = [
    Option<"own", "own", "bool", "false", "use Triton's own `ttg.barrier`">
  ];
}

def VerifyTarget : TargetPass<"autodiff-verify-target", "::mlir::ModuleOp"> {
  let summary = "refuse kernels that a device does not take";
  let description = [{
    Products that sum over too few elements for a matrix instruction, sums that
    Triton would turn into products, and tiles and numbers of warps beyond the
    limits are internal errors. In a module without derived kernels, all
    functions are examined. Triton's output is such a module; its use of shared
    memory is checked, too.
    Fault: short-products.
  }];
  let options = [
    Option<"target", "target", "std::string", "",
           "the device; that of the module without it">,
    Option<"sharedMemory", "shared-memory", "int64_t", "0",
           "bytes that Triton has given a program">
  ];
}

def LoopBranches : TargetPass<"autodiff-loop-branches", "::mlir::triton::FuncOp"> {
  let summary = "turn branches with products into loops of at most one "
                "iteration";
  let description = [{
    Triton moves conversions of layouts into branches of which one side
    multiplies and the other does little, and its passes may fail then. It moves
    none into loops, so such a branch becomes a loop. It is for kernels that
    Triton has rejected: values that are the same in all iterations are computed
    even if the loop does not run.
    Fault: rejected-branches.
  }];
}

def ReduceColumns : TargetPass<"autodiff-reduce-columns", "::mlir::triton::FuncOp"> {
  let summary = "give tiles that are reduced to scalars a second axis of length "
                "one";
  let description = [{
    For Blackwell, Triton 3.6 and 3.7 look for layouts through reductions to
    where a product is computed, and crash at a reduction of a single axis, which
    results in a scalar. This is for kernels that it has rejected.
    Fault: scalars-of-products.
  }];
}

def CopyToUsers : TargetPass<"autodiff-copy-to-users", "::mlir::triton::FuncOp"> {
  let summary = "let each block compute by itself what several blocks use";
  let description = [{
    Triton converts a tile to the layout of a product where the product is. Up
    to 3.7, its passes may use that conversion for another product, too, in a
    block that is not reached from there, and reject what they have made. They
    do so if the tile is computed element by element, or only seen in another
    shape. With a copy in each block, there is nothing to be shared. It is for
    kernels that Triton has rejected.
    Fault: shared-conversions.
  }];
}

def AdvanceViews : TargetPass<"autodiff-advance-views", "::mlir::triton::FuncOp"> {
  let summary = "put tt.expand_dims and tt.split behind what they are of";
  let description = [{
    These take their operand in a layout of their own, to which Triton converts
    it where they are. If the operand is used before that, too, Triton 3.6 may
    leave one of these uses with the other layout when it moves a conversion to
    where all of this is computed, and reject what it has made. It does not if
    the operand is converted before all other uses. This is for kernels that
    Triton has rejected.
    Fault: rows-as-tiles.
  }];
}

def SumUnitAxes : TargetPass<"autodiff-sum-unit-axes", "::mlir::triton::FuncOp"> {
  let summary = "drop axes of one element by sums";
  let description = [{
    A sum over an axis leaves a row in the layout that `tt.expand_dims` takes;
    `tt.reshape` leaves it in a layout of its own, and Triton 3.6 may reject what
    it makes of rows in both. This is for kernels that it has rejected.
    Fault: unit-axes.
  }];
}

def HideOperands : TargetPass<"autodiff-hide-operands", "::mlir::triton::FuncOp"> {
  let summary = "hide from Triton what the operands of products come of";
  let description = [{
    Triton 3.6 computes what an operand comes of in the layout of the operand,
    and moves conversions to that layout to wherever they cost least. It cannot
    convert conditions so for float64 products, and rejects what it has made.
    Behind a reduction over one element, the operand itself is converted. This is
    for kernels that Triton has rejected.
    Fault: unconvertible-conditions.
  }];
}

#endif // AUTODIFF_TARGET_PASSES_TD
