//===- Passes.h - From a primal kernel to its backward ----------*- C++ -*-===//
#ifndef AUTODIFF_TRANSFORMS_PASSES_H
#define AUTODIFF_TRANSFORMS_PASSES_H

#include "autodiff/Analysis/ScalarExpr.h"
#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Transforms/Needs.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

#define GEN_PASS_DECL
#include "autodiff/Transforms/Passes.h.inc"

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
/// The forward that saves for the backward; a copy of the primal at first.
triton::FuncOp getOrCreateForward(ModuleOp module);
/// The rewritten primal that the backward is to be derived from, or the primal.
triton::FuncOp getDifferentiated(ModuleOp module);
/// The same, but never the primal: a copy of it at first.
triton::FuncOp getOrCreateDifferentiated(ModuleOp module);

/// Attribute of derived functions: "differentiated", "backward", "variant",
/// "tally", "clear", "round", "forward", "count" or "tangent".
constexpr llvm::StringLiteral kRoleAttr = "autodiff.role";
/// That of a function; empty if it has none.
llvm::StringRef getRole(triton::FuncOp function);
/// Attribute of a primal whose elements have an order that Triton leaves open:
/// the forward has to be derived from it, too.
constexpr llvm::StringLiteral kOrderedAttr = "autodiff.ordered";

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

/// How the plan has a kernel launched; null if it does not say.
LaunchOp findLaunch(triton::FuncOp kernel);
/// The same; at first like the forward.
LaunchOp launchOf(triton::FuncOp kernel);
/// Removes a kernel and its launch.
void eraseKernel(triton::FuncOp kernel);
/// What the kernels of a module take.
llvm::DenseSet<OperandAttr> collectOperands(ModuleOp module);
void collectOperands(triton::FuncOp kernel,
                     llvm::DenseSet<OperandAttr> &operands);
/// Removes what passes of ours have noted at a kernel and its operations.
void dropMarks(triton::FuncOp kernel);

/// The grid of a kernel that has one of its own; empty if it has not.
SmallVector<ExprAttr> getGrid(triton::FuncOp kernel);
void setGrid(triton::FuncOp kernel, ArrayRef<ExprAttr> grid);

/// The operations of a backward's outer level that belong to the adjoint:
/// effects, and what depends on a cotangent.
llvm::DenseSet<Operation *> findAdjoint(Block &body);

/// The loops of a kernel, inner ones first.
SmallVector<scf::ForOp> getLoops(triton::FuncOp kernel);

/// Whether `op`, or an operation inside of it, may write to memory.
bool mayWrite(Operation *op);

/// Removes arguments that a derived kernel does not use, of the kinds that may
/// go.
void dropUnusedArguments(triton::FuncOp kernel,
                         llvm::function_ref<bool(OperandKind)> mayGo);

/// Removes the primal's arguments that a derived kernel does not use: the
/// runtime would have to keep their memory, and unchanged, until the backward.
void dropUnusedArguments(triton::FuncOp kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_TRANSFORMS_PASSES_H
