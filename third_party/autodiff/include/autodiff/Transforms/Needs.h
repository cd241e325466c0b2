//===- Needs.h - What a pass needs of a module ------------------*- C++ -*-===//
#ifndef AUTODIFF_TRANSFORMS_NEEDS_H
#define AUTODIFF_TRANSFORMS_NEEDS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::autodiff {

/// What earlier passes leave for later ones. Passes.td says who needs what.
enum class Need {
  /// A kernel: a public function without results that none of our passes made.
  Kernel,
  /// The body of the kernel, and of its copy (`@…_framed`), is one block.
  OneBlock,
  /// Memory accesses are numbered: `autodiff.site`.
  Sites,
  /// Nothing has been derived from the kernel, nor copied: it may still change.
  Underived,
  /// There is no backward kernel yet: the copy `@…_framed` may still change.
  Unreversed,
  /// If there is a copy `@…_framed`, it has the same loops as the kernel.
  SameLoops,
  /// There are backward kernels. Their arguments say what is passed for them,
  /// and the accesses that they refer to by number are in the forward.
  Backward,
  /// Only one backward kernel has been made.
  OneBackward,
  /// Values that a backward kernel records for itself have buffers.
  Taped,
  /// Sizes that the host computes are not yet arguments of kernels.
  Unsized,
};

/// Reports the first of `needs` that `module` lacks, and which pass provides
/// it.
LogicalResult checkNeeds(llvm::StringRef pass, ModuleOp module,
                         llvm::ArrayRef<Need> needs);

/// A pass that fails with an error if the module lacks one of its needs.
template <Need... needs> class NeedyPass : public OperationPass<ModuleOp> {
protected:
  using OperationPass::OperationPass;

  /// The pass itself, which runs if nothing is missing.
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
