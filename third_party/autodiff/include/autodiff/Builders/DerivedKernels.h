//===- DerivedKernels.h - Kernels that passes of ours derive ----*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_DERIVEDKERNELS_H
#define AUTODIFF_BUILDERS_DERIVEDKERNELS_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Dialect/Autodiff.h"
#include "mlir/IR/BuiltinOps.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Adds to the numbers that are assumed not to be negative.
void assumeNotNegative(ModuleOp module, ArrayRef<ScalarExpr> numbers);
/// What a LaunchAttr says, while it is found out.
struct Launch {
  SmallVector<ExprAttr> grid, assumed;
  SmallVector<CheckAttr> checks;
  StringAttr position;
  int64_t length = 0;
  ArrayAttr batched;
  SmallVector<int64_t> lengths;
  StringAttr unraveled;

  /// The launch that the kernels are for, as far as it is known: the user's, if
  /// it is not another one already.
  static Launch of(ModuleOp module);
  void assume(ArrayRef<ScalarExpr> numbers);
  /// Makes it the one that the kernels are for.
  void record(ModuleOp module) const;
};

/// A copy of `primal` after it for another role, whose arguments are the
/// primal's; its name has `suffix`, the same as the role by default.
triton::FuncOp derive(triton::FuncOp primal, llvm::StringRef role,
                      llvm::StringRef suffix = {});

/// Appends an argument that the runtime fills with `operand`; `buffer`, for
/// buffers, describes it.
BlockArgument appendOperand(triton::FuncOp kernel, Type type,
                            OperandAttr operand, Attribute buffer = {});

/// The forward that saves for the backward; a copy of the primal at first.
triton::FuncOp getOrCreateForward(ModuleOp module);
/// The rewritten primal that the backward is to be derived from, but never the
/// primal: a copy of it at first.
triton::FuncOp getOrCreateDifferentiated(ModuleOp module);

/// How the plan has a kernel launched; at first like the forward.
LaunchOp launchOf(triton::FuncOp kernel);
/// Removes a kernel and its launch.
void eraseKernel(triton::FuncOp kernel);
/// Removes what passes of ours have noted at a kernel and its operations.
void dropMarks(triton::FuncOp kernel);

/// Gives a kernel a grid of its own.
void setGrid(triton::FuncOp kernel, ArrayRef<ExprAttr> grid);

/// Removes arguments that a derived kernel does not use, of the kinds that may
/// go.
void dropUnusedArguments(triton::FuncOp kernel,
                         llvm::function_ref<bool(OperandKind)> mayGo);

/// Removes the primal's arguments that a derived kernel does not use: the
/// runtime would have to keep their memory, and unchanged, until the backward.
void dropUnusedArguments(triton::FuncOp kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_DERIVEDKERNELS_H
