//===- DerivedKernels.h - Kernels that passes of ours derive ----*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_DERIVEDKERNELS_H
#define AUTODIFF_BUILDERS_DERIVEDKERNELS_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/IR/BuiltinOps.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Adds to the numbers that the plan assumes not to be negative.
void assumeNotNegative(ModuleOp module, ArrayRef<ScalarExpr> numbers);
/// A LaunchAttr under construction.
struct RearrangedLaunch {
  SmallVector<ExprAttr> grid, assumed;
  SmallVector<CheckAttr> checks;
  StringAttr position;
  int64_t length = 0;
  ArrayAttr batched;
  SmallVector<int64_t> lengths;
  StringAttr unraveled;

  /// The launch that the kernels of the module are for: the rearranged one, if
  /// a pass has recorded one, and otherwise the user's.
  static RearrangedLaunch of(ModuleOp module);
  void assume(ArrayRef<ScalarExpr> numbers);
  /// Sets the module's launch.
  void record(ModuleOp module) const;
};

/// A copy of `primal`, the user's kernel, behind it, with the same arguments
/// and another role. Its name gets `suffix`, by default the role.
triton::FuncOp derive(triton::FuncOp primal, llvm::StringRef role,
                      llvm::StringRef suffix = {});

/// Appends an argument to a kernel. `operand` says what the runtime passes for
/// it; `buffer` describes it if it is a buffer.
BlockArgument appendOperand(triton::FuncOp kernel, Type type,
                            OperandAttr operand, Attribute buffer = {});

/// The augmented forward, which saves values for the backward; if there is
/// none, a copy of the user's kernel is made.
triton::FuncOp getOrCreateForward(ModuleOp module);
/// The copy of the user's kernel that is differentiated, `@…_framed`; it is
/// made if there is none.
triton::FuncOp getOrCreateDifferentiated(ModuleOp module);

/// The plan's launch of a kernel; a new one has the forward's grid and options.
LaunchOp launchOf(triton::FuncOp kernel);
/// Removes a kernel and its launch.
void eraseKernel(triton::FuncOp kernel);
/// Removes the attributes that our passes have set on a kernel and its
/// operations.
void dropMarks(triton::FuncOp kernel);

/// Sets a grid for a kernel that does not run on the forward's.
void setGrid(triton::FuncOp kernel, ArrayRef<ExprAttr> grid);

/// Removes the unused arguments of a derived kernel whose kind `mayGo`.
void dropUnusedArguments(triton::FuncOp kernel,
                         llvm::function_ref<bool(OperandKind)> mayGo);

/// Removes the arguments of the user's kernel that a derived kernel does not
/// use. Otherwise the runtime would have to keep their memory unchanged until
/// the backward.
void dropUnusedArguments(triton::FuncOp kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_DERIVEDKERNELS_H
