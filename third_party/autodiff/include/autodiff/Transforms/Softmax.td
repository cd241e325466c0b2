//===- Softmax.td - Rescaled sums become plain ones --------*- tablegen -*-===//

def RescaleAccumulators : AutodiffPass<"autodiff-rescale-accumulators", "::mlir::ModuleOp", !listconcat(RewritesCopy, ["SameLoops"])> {
  let summary = "turn rescaled accumulators (online softmax) into plain ones";
  let description = [{
    A loop that carries a running maximum m and accumulators A with
    A' = A·e^(m−m') + f(e^(x−m')) is rewritten to use the final maximum in
    every iteration. Its accumulators become plain sums, and each iteration
    stands alone. The primal stays as it is; the rewritten copy is what
    autodiff-reverse differentiates.
  }];
}

def CarrySums : AutodiffPass<"autodiff-carry-sums", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "carry plain sums in place of their means and logarithms";
  let description = [{
    Where a loop carries the logarithm of a sum, ℓ' = c + log(e^(ℓ−c) + s), or
    a sum that it divides by another one in each iteration, A' = A·(l/l') + g/l',
    the copy that is differentiated carries the sums, whose iterations stand
    alone, and takes logarithm and quotient after the loop.
  }];
}

def DropReferences : AutodiffPass<"autodiff-drop-references", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "drop derivatives of what exponents are taken relative to";
  let description = [{
    Where a scaling-degree analysis proves that what the kernel stores is
    unchanged by a shift of a value that exponents are taken relative to (the
    decay of linear attention in factors), no derivative flows through it.
  }];
}

def DropMaxima : AutodiffPass<"autodiff-drop-maxima", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "drop derivatives of maxima that the outputs do not depend on";
  let description = [{
    Where a scaling-degree analysis proves that what the kernel stores is
    unchanged by a shift of a maximum (softmax, log-sum-exp, attention), the
    maximum is marked constant.
  }];
}

def FoldNormalizers : AutodiffPass<"autodiff-fold-normalizers", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "take exponentials relative to their sum";
  let description = [{
    A maximum m that was dropped may be any value. Where a sum of exponentials
    l is relative to it, the copy that is differentiated takes L = m + log l in
    its place, for which the sum is one: one value is saved, not two, and
    e^(x−m)/l is e^(x−L).
  }];
}

def PickMaxima : AutodiffPass<"autodiff-pick-maxima", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "turn running maxima with a derivative into sums";
  let description = [{
    Where a loop keeps the maximum of what its iterations offer, and the outputs
    depend on it, the primal also finds the iteration of the one that is taken,
    and the copy that is differentiated sums up what is offered there, and zero
    elsewhere: no iteration needs what the maximum was before.
  }];
}
