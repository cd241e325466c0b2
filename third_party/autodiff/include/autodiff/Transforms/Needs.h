//===- Needs.h - What a pass needs of a module ------------------*- C++ -*-===//
#ifndef AUTODIFF_TRANSFORMS_NEEDS_H
#define AUTODIFF_TRANSFORMS_NEEDS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::autodiff {

/// What earlier passes leave for later ones. Passes.td says who needs what.
enum class Need {
  /// One kernel: a public function without results that no pass of ours
  /// derived.
  Kernel,
  /// Its body, and that of its copy, is one block.
  OneBlock,
  /// Its accesses have numbers.
  Sites,
  /// No kernel is derived from it, nor is there a copy: it may still change.
  Underived,
  /// There is no backward kernel yet: the copy may still change.
  Unreversed,
  /// The copy, if there is one, has the loops of the kernel.
  SameLoops,
  /// Backward kernels, whose arguments say what they are, of accesses that the
  /// differentiated kernel has.
  Backward,
  /// No pass has made several backward kernels of it.
  OneBackward,
  /// What a backward kernel records itself has a place in memory.
  Taped,
  /// No kernel has sizes as arguments yet.
  Unsized,
};

/// Reports the first of `needs` that `module` lacks, and which pass makes it.
LogicalResult checkNeeds(llvm::StringRef pass, ModuleOp module,
                         llvm::ArrayRef<Need> needs);

/// A pass that runs where a module has what it needs; otherwise it is an error.
template <Need... needs> class NeedyPass : public OperationPass<ModuleOp> {
protected:
  using OperationPass::OperationPass;

  /// What the pass does.
  virtual void transform() = 0;

private:
  void runOnOperation() final {
    if (failed(checkNeeds(getArgument(), getOperation(), {needs...})))
      return signalPassFailure();
    transform();
  }
};

} // namespace mlir::autodiff

#endif // AUTODIFF_TRANSFORMS_NEEDS_H
