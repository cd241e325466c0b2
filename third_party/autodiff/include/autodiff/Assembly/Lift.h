//===- Lift.h - Inline assembly as arithmetic -------------------*- C++ -*-===//
#ifndef AUTODIFF_ASSEMBLY_LIFT_H
#define AUTODIFF_ASSEMBLY_LIFT_H

#include "autodiff/Assembly/SharedRegisters.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/Support/Error.h"

namespace mlir::autodiff {

/// Replaces inline assembly by arithmetic of the same meaning on each element.
/// An instruction that TTIR has no operation for stays inline assembly, alone,
/// so that `parsePtxInstruction` can read it. If something cannot be replaced,
/// the error says what, and nothing is changed. Otherwise the new operations
/// are added to `emitted`, if it is given.
llvm::Error liftAssembly(triton::ElementwiseInlineAsmOp op,
                         SmallVectorImpl<Operation *> *emitted = nullptr);

/// Fails if assembly reads an operand that it may have overwritten, or writes
/// to one that it must not. `copies` are those of the kernel before any
/// assembly is replaced.
llvm::Error checkRegisters(triton::ElementwiseInlineAsmOp op,
                           const ptx::Copies &copies);

/// The text behind "autodiff." in inline assembly that is just such a comment,
/// which marks a value for differentiation; "" for all other operations.
StringRef getMarker(Operation *op);

} // namespace mlir::autodiff

#endif // AUTODIFF_ASSEMBLY_LIFT_H
