//===- Kernels.h - The kernels of a module ----------------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_KERNELS_H
#define AUTODIFF_ANALYSIS_KERNELS_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The user's kernel: the public function that none of our passes made.
triton::FuncOp getPrimal(ModuleOp module);
/// The first backward kernel, or null if there is none.
triton::FuncOp getBackward(ModuleOp module);
/// All backward kernels in launch order.
SmallVector<triton::FuncOp> getBackwards(ModuleOp module);
/// The variants of a backward kernel (the same with longer tiles, for some
/// launches), in the order in which they are tried.
SmallVector<triton::FuncOp> getVariants(triton::FuncOp backward);
/// The kernels that run before and after those that add to sums; see
/// autodiff-tally-sums.
SmallVector<triton::FuncOp> getTallying(ModuleOp module);
/// Whether the plan launches this kernel.
bool isLaunched(triton::FuncOp kernel);
/// Whether this is a backward kernel, a variant of one, or one of
/// `getTallying`.
bool isBackward(triton::FuncOp kernel);
/// The derived kernel of this kind, or null.
triton::FuncOp getForward(ModuleOp module);
triton::FuncOp getCounting(ModuleOp module);
/// The copy `@…_framed` of the user's kernel that is rewritten to be
/// differentiated, or if there is none, the user's kernel.
triton::FuncOp getDifferentiated(ModuleOp module);
/// Attribute of derived functions: "differentiated", "backward", "variant",
/// "tally", "clear", "round", "forward", "count", "tangent" or "rules".
constexpr llvm::StringLiteral kRoleAttr = "autodiff.role";
/// The role of a function; empty if it has none.
llvm::StringRef getRole(triton::FuncOp function);
/// Attribute of a kernel with elements in an order that Triton leaves open
/// (`tt.cat`). The forward then has to be derived from it, too, to have the
/// same order.
constexpr llvm::StringLiteral kOrderedAttr = "autodiff.ordered";

/// The plan's launch of a kernel; null if there is none.
LaunchOp findLaunch(triton::FuncOp kernel);
/// The kernel of a launch.
triton::FuncOp getKernel(LaunchOp launch);
/// What the runtime passes to the kernels of a module.
llvm::DenseSet<OperandAttr> collectOperands(ModuleOp module);
void collectOperands(triton::FuncOp kernel,
                     llvm::DenseSet<OperandAttr> &operands);
/// The grid of a kernel that does not run on the forward's; empty if it does.
SmallVector<ExprAttr> getGrid(triton::FuncOp kernel);

/// The operations of the outermost block of a backward that belong to the
/// adjoint: those with effects, and those that depend on a cotangent.
llvm::DenseSet<Operation *> findAdjoint(Block &body);

/// The loops of a kernel, inner ones first.
SmallVector<scf::ForOp> getLoops(triton::FuncOp kernel);

/// Whether `op`, or an operation inside of it, may write to memory.
bool mayWrite(Operation *op);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_KERNELS_H
