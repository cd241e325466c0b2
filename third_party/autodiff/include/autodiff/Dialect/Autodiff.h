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
/// Marks primal arguments of a backward whose gradient is wanted.
constexpr llvm::StringLiteral kWantedAttr = "autodiff.wanted";
/// Marks primal arguments of a backward whose content has a cotangent.
constexpr llvm::StringLiteral kHasCotangentAttr = "autodiff.has_cotangent";
/// Number of the counter of a loop whose iterations must be counted.
constexpr llvm::StringLiteral kCounterAttr = "autodiff.counter";
/// Marks a select of the distance between two maxima, zero where it is not a
/// number.
constexpr llvm::StringLiteral kChangesFrameAttr = "autodiff.changes_frame";
/// Marks a select of what a loop has summed, one if it has not run: then it
/// only divides zeros.
constexpr llvm::StringLiteral kIfRunAttr = "autodiff.if_run";
/// Sums of a loop that are at least one where a maximum that the loop carries
/// is finite: pairs of its results, maximum and sum.
constexpr llvm::StringLiteral kAttainedAttr = "autodiff.attained";
/// Marks a select of zero in place of a product with a cotangent, or another
/// factor, that is zero: the product may not be a number there.
constexpr llvm::StringLiteral kUnlessZeroAttr = "autodiff.unless_zero";
/// Number of a memory operation within its primal.
constexpr llvm::StringLiteral kSiteAttr = "autodiff.site";
/// Of a load in the differentiated copy: its mask leaves out lanes that the
/// forward reads.
constexpr llvm::StringLiteral kNarrowedAttr = "autodiff.narrowed";
/// Of the kernel that autodiff-wrap-function makes: the function's type.
constexpr llvm::StringLiteral kFunctionAttr = "autodiff.function";
/// Attributes of functions with the role "rule": what the user calls the rule,
/// and the inline assembly or library symbol that it is for.
constexpr llvm::StringLiteral kRuleAttr = "autodiff.rule";
constexpr llvm::StringLiteral kRuleAsmAttr = "autodiff.rule_asm";
constexpr llvm::StringLiteral kRuleSymbolAttr = "autodiff.rule_symbol";
/// Marks loops of a backward that run in the forward's order: iteration t is
/// the primal's, and stands alone but for sums.
constexpr llvm::StringLiteral kParallelAttr = "autodiff.parallel";
/// Marks a loop that is to be divided, and says along which axis a store in it
/// takes part.
constexpr llvm::StringLiteral kDividedAttr = "autodiff.divided";
/// Triton's attribute of loops: how many stages loads are pipelined over.
constexpr llvm::StringLiteral kStagesAttr = "tt.num_stages";

} // namespace mlir::autodiff

#endif // AUTODIFF_DIALECT_AUTODIFF_H
