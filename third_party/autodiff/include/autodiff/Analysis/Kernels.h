//===- Kernels.h - The kernels of a module ----------------------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_KERNELS_H
#define AUTODIFF_ANALYSIS_KERNELS_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The kernel of a module: its public function that no pass of ours derived.
triton::FuncOp getPrimal(ModuleOp module);
/// The first backward kernel that a pass of ours derived, or null.
triton::FuncOp getBackward(ModuleOp module);
/// All backward kernels in launch order.
SmallVector<triton::FuncOp> getBackwards(ModuleOp module);
/// The variants of a backward kernel, the first that applies to a launch first.
SmallVector<triton::FuncOp> getVariants(triton::FuncOp backward);
/// The kernels around those that add to sums; see autodiff-tally-sums.
SmallVector<triton::FuncOp> getTallying(ModuleOp module);
/// Whether the plan has this kernel run.
bool isLaunched(triton::FuncOp kernel);
/// Whether this is a backward kernel, a variant of one, or one of the last.
bool isBackward(triton::FuncOp kernel);
/// The function that a pass of ours derived, or null.
triton::FuncOp getForward(ModuleOp module);
triton::FuncOp getCounting(ModuleOp module);
/// The rewritten primal that the backward is to be derived from, or the primal.
triton::FuncOp getDifferentiated(ModuleOp module);
/// Attribute of derived functions: "differentiated", "backward", "variant",
/// "tally", "clear", "round", "forward", "count" or "tangent".
constexpr llvm::StringLiteral kRoleAttr = "autodiff.role";
/// That of a function; empty if it has none.
llvm::StringRef getRole(triton::FuncOp function);
/// Attribute of a primal whose elements have an order that Triton leaves open:
/// the forward has to be derived from it, too.
constexpr llvm::StringLiteral kOrderedAttr = "autodiff.ordered";

/// How the plan has a kernel launched; null if it does not say.
LaunchOp findLaunch(triton::FuncOp kernel);
/// What the kernels of a module take.
llvm::DenseSet<OperandAttr> collectOperands(ModuleOp module);
void collectOperands(triton::FuncOp kernel,
                     llvm::DenseSet<OperandAttr> &operands);
/// The grid of a kernel that has one of its own; empty if it has not.
SmallVector<ExprAttr> getGrid(triton::FuncOp kernel);

/// The operations of a backward's outer level that belong to the adjoint:
/// effects, and what depends on a cotangent.
llvm::DenseSet<Operation *> findAdjoint(Block &body);

/// The loops of a kernel, inner ones first.
SmallVector<scf::ForOp> getLoops(triton::FuncOp kernel);

/// Whether `op`, or an operation inside of it, may write to memory.
bool mayWrite(Operation *op);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_KERNELS_H
