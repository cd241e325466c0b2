//===- Autodiff.h - The autodiff dialect ------------------------*- C++ -*-===//
#ifndef AUTODIFF_DIALECT_AUTODIFF_H
#define AUTODIFF_DIALECT_AUTODIFF_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "triton/Dialect/Triton/IR/AxisMap.h"

#include "autodiff/Dialect/AutodiffDialect.h.inc"
#include "autodiff/Dialect/AutodiffEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "autodiff/Dialect/AutodiffAttributes.h.inc"
#define GET_OP_CLASSES
#include "autodiff/Dialect/AutodiffOps.h.inc"

namespace mlir::autodiff {

/// Argument attribute of derived kernels: an OperandAttr.
constexpr llvm::StringLiteral kOperandAttr = "autodiff.operand";
/// Marks arguments of the user's kernel in a backward: their gradient is
/// wanted.
constexpr llvm::StringLiteral kWantedAttr = "autodiff.wanted";
/// Marks arguments of the user's kernel in a backward: their content has a
/// cotangent.
constexpr llvm::StringLiteral kHasCotangentAttr = "autodiff.has_cotangent";
/// On a loop whose iterations must be counted: the number of its counter.
constexpr llvm::StringLiteral kCounterAttr = "autodiff.counter";
/// Marks a select of the difference of two maxima, which is zero where the
/// difference is NaN.
constexpr llvm::StringLiteral kChangesFrameAttr = "autodiff.changes_frame";
/// Marks a select between a loop's sum and one, which is taken if the loop has
/// not run: the result only divides zeros then.
constexpr llvm::StringLiteral kIfRunAttr = "autodiff.if_run";
/// On a loop: pairs of its results, a maximum and a sum. Where the maximum is
/// finite, the sum is at least one.
constexpr llvm::StringLiteral kAttainedAttr = "autodiff.attained";
/// Marks a select of zero where a cotangent, or another factor of a product, is
/// zero: the product may be NaN there.
constexpr llvm::StringLiteral kUnlessZeroAttr = "autodiff.unless_zero";

/// Attribute of an exchange with zero that takes what is in memory. Several
/// programs may, and it does not matter which of them comes first.
constexpr llvm::StringLiteral kTakesAttr = "autodiff.takes";
/// On an atomic maximum, minimum or exchange: another kernel computes the
/// tangents of what it leaves, when all programs have run. On a kernel with
/// tangents: the arguments that such operations go to.
constexpr llvm::StringLiteral kLaterAttr = "autodiff.later";
/// Of a kernel with tangents: an argument that holds what it would store.
constexpr llvm::StringLiteral kLeftAttr = "autodiff.left";
/// Number of a memory operation within the user's kernel.
constexpr llvm::StringLiteral kSiteAttr = "autodiff.site";
/// On a load in the copy that is differentiated: its mask leaves out lanes that
/// the forward reads.
constexpr llvm::StringLiteral kNarrowedAttr = "autodiff.narrowed";
/// On the kernel that autodiff-wrap-function makes: the function's type.
constexpr llvm::StringLiteral kFunctionAttr = "autodiff.function";
/// On functions with the role "rule": the user's name for the rule, and the
/// inline assembly or library symbol that it is for.
constexpr llvm::StringLiteral kRuleAttr = "autodiff.rule";
constexpr llvm::StringLiteral kRuleAsmAttr = "autodiff.rule_asm";
constexpr llvm::StringLiteral kRuleSymbolAttr = "autodiff.rule_symbol";
/// On such functions: it pushes tangents forward; it is the exact derivative.
constexpr llvm::StringLiteral kRuleForwardAttr = "autodiff.rule_forward";
constexpr llvm::StringLiteral kRuleExactAttr = "autodiff.rule_exact";
/// Marks loops of a backward that run in the forward's order: iteration t is
/// the forward's, and iterations are independent but for sums.
constexpr llvm::StringLiteral kParallelAttr = "autodiff.parallel";
/// Marks a loop that is to be split into pieces, and says which axis of a store
/// in it is split.
constexpr llvm::StringLiteral kDividedAttr = "autodiff.divided";
/// Triton's attribute of loops: the number of pipeline stages of loads.
constexpr llvm::StringLiteral kStagesAttr = "tt.num_stages";

} // namespace mlir::autodiff

#endif // AUTODIFF_DIALECT_AUTODIFF_H
