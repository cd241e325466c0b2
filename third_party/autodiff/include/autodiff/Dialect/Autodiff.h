//===- Autodiff.h - The autodiff dialect ------------------------*- C++ -*-===//
#ifndef AUTODIFF_DIALECT_AUTODIFF_H
#define AUTODIFF_DIALECT_AUTODIFF_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "autodiff/Dialect/AutodiffDialect.h.inc"
#include "autodiff/Dialect/AutodiffEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "autodiff/Dialect/AutodiffAttributes.h.inc"
#define GET_OP_CLASSES
#include "autodiff/Dialect/AutodiffOps.h.inc"

namespace mlir::autodiff {

/// Argument attribute of derived kernels: an OperandAttr.
constexpr llvm::StringLiteral kOperandAttr = "autodiff.operand";
/// Argument attribute of derived kernels: a BufferAttr, a GradientAttr, or the
/// ExprAttr of a size.
constexpr llvm::StringLiteral kBufferAttr = "autodiff.buffer";
/// Argument attribute of derived kernels: a CheckAttr that must hold for the
/// way the argument is used.
constexpr llvm::StringLiteral kCheckAttr = "autodiff.check";
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
/// Number of a memory operation within its primal.
constexpr llvm::StringLiteral kSiteAttr = "autodiff.site";
/// Of a load in the differentiated copy: its mask leaves out lanes that the
/// forward reads.
constexpr llvm::StringLiteral kNarrowedAttr = "autodiff.narrowed";
/// Attributes of functions with the role "rule": what the user calls the rule,
/// and the inline assembly or library symbol that it is for.
constexpr llvm::StringLiteral kRuleAttr = "autodiff.rule";
constexpr llvm::StringLiteral kRuleAsmAttr = "autodiff.rule_asm";
constexpr llvm::StringLiteral kRuleSymbolAttr = "autodiff.rule_symbol";
/// Marks loops of a backward that run in the forward's order: iteration t is
/// the primal's, and stands alone but for sums.
constexpr llvm::StringLiteral kParallelAttr = "autodiff.parallel";
/// The grid of a kernel that is not the primal's: three expressions.
constexpr llvm::StringLiteral kGridAttr = "autodiff.grid";
/// Attributes of a kernel that does the same as another one, its name, in
/// launches for which an expression is not zero.
constexpr llvm::StringLiteral kVariantOfAttr = "autodiff.variant_of";
constexpr llvm::StringLiteral kWhenAttr = "autodiff.when";
/// Attribute of a module: numbers that must not be negative in any program of a
/// launch for which the kernels are, an array of ExprAttr.
constexpr llvm::StringLiteral kAssumedAttr = "autodiff.assumed";
/// Attribute of a module: the launch that the kernels are for if that is not
/// the user's, a LaunchAttr.
constexpr llvm::StringLiteral kLaunchAttr = "autodiff.launch";
/// Attribute of a module: how iterations may become an axis of tiles, a
/// BatchAttr.
constexpr llvm::StringLiteral kBatchAttr = "autodiff.batch";
/// Attribute of a module: how positions may be taken apart into axes of tiles,
/// an UnravelAttr.
constexpr llvm::StringLiteral kUnravelAttr = "autodiff.unravel";
/// Attribute of a module: what to ask for next, arrays of NextAttr in order of
/// priority.
constexpr llvm::StringLiteral kNextAttr = "autodiff.next";

/// Attributes of a module: the stores of the user's kernel, and where
/// contributions to gradients may be other than zero: arrays of StoredAttr and
/// LiveAttr.
constexpr llvm::StringLiteral kStoresAttr = "autodiff.stores";
constexpr llvm::StringLiteral kLiveAttr = "autodiff.live";
/// The compile options of a kernel that are not the forward's: a dictionary.
constexpr llvm::StringLiteral kOptionsAttr = "autodiff.options";
/// Marks a loop that is to be divided, and says along which axis a store in it
/// takes part.
constexpr llvm::StringLiteral kDividedAttr = "autodiff.divided";
/// Triton's attribute of loops: how many stages loads are pipelined over.
constexpr llvm::StringLiteral kStagesAttr = "tt.num_stages";
/// The checked accesses of a kernel, by number.
constexpr llvm::StringLiteral kAccessesAttr = "autodiff.accesses";

} // namespace mlir::autodiff

#endif // AUTODIFF_DIALECT_AUTODIFF_H
