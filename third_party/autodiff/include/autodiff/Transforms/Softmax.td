//===- Softmax.td - Rescaled sums become plain ones --------*- tablegen -*-===//

def RescaleAccumulators : AutodiffPass<"autodiff-rescale-accumulators", "::mlir::ModuleOp", !listconcat(RewritesCopy, ["SameLoops"])> {
  let summary = "turn rescaled accumulators (online softmax) into plain ones";
  let description = [{
    A loop carries a running maximum m and accumulators A with A' = A·e^(m−m') +
    f(e^(x−m')). The copy that is differentiated uses the final maximum in every
    iteration instead. Its accumulators become plain sums, and its iterations no
    longer depend on each other. The user's kernel stays as it is.
  }];
}

def CarrySums : AutodiffPass<"autodiff-carry-sums", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "carry plain sums in place of their means and logarithms";
  let description = [{
    A loop may carry the logarithm of a sum, ℓ' = c + log(e^(ℓ−c) + s), or a sum
    that it divides by another one in each iteration, A' = A·(l/l') + g/l'. The
    copy that is differentiated carries the sums themselves, whose iterations do
    not depend on each other, and takes logarithm or quotient after the loop.
  }];
}

def DropReferences : AutodiffPass<"autodiff-drop-references", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "drop derivatives through the reference of exponents";
  let description = [{
    Exponents may be relative to a reference r, e^(g−r) (the decay of linear
    attention in factors). A scaling-degree analysis (ScalingDegrees.h) may
    prove that a shift of r leaves what the kernel stores unchanged. Then no
    derivative flows through r.
  }];
}

def DropMaxima : AutodiffPass<"autodiff-drop-maxima", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "drop derivatives of maxima that the outputs do not depend on";
  let description = [{
    A scaling-degree analysis (ScalingDegrees.h) may prove that a shift of a
    maximum leaves what the kernel stores unchanged (softmax, log-sum-exp,
    attention). The maximum is then marked constant.
  }];
}

def StopMaxima : AutodiffPass<"autodiff-stop-maxima", "::mlir::triton::FuncOp"> {
  let summary = "stop tangents of maxima that the outputs do not depend on";
  let description = [{
    What autodiff-drop-maxima is for gradients, in a kernel whose tangents are
    pushed: where scaling degrees prove that a kernel stores the same whatever
    its maximum is, the maximum is a constant. In a loop with a running maximum
    (RescaledLoop.h), that of each iteration is.
  }];
}

def FoldNormalizers : AutodiffPass<"autodiff-fold-normalizers", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "take exponentials relative to their sum";
  let description = [{
    If outputs do not depend on a maximum m, it may be any value. Where a sum of
    exponentials l is relative to m, the copy that is differentiated uses L = m
    + log l instead of m. With it, the sum is one. So one value is saved in
    place of two, and e^(x−m)/l is e^(x−L).
  }];
}

def PickMaxima : AutodiffPass<"autodiff-pick-maxima", "::mlir::ModuleOp", RewritesCopy> {
  let summary = "turn running maxima with a derivative into sums";
  let description = [{
    A loop may carry the maximum of a value of each iteration. If outputs depend
    on it, the user's kernel also finds the iteration that attains the maximum.
    The copy that is differentiated then sums up the value of that iteration,
    and zero for the others: no iteration needs the maximum so far.
  }];
}
