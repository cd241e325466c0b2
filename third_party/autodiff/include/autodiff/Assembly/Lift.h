//===- Lift.h - Inline assembly as arithmetic -------------------*- C++ -*-===//
#ifndef AUTODIFF_ASSEMBLY_LIFT_H
#define AUTODIFF_ASSEMBLY_LIFT_H

#include "autodiff/Assembly/SharedRegisters.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/Support/Error.h"

namespace mlir::autodiff {

/// Replaces inline assembly by arithmetic of the same meaning on each element.
/// Instructions that TTIR has no operation for are left, each on its own: what
/// `parsePtxInstruction` reads. The error says what cannot be replaced, and
/// then nothing is. Otherwise `emitted`, if given, gets what was put in its
/// place.
llvm::Error liftAssembly(triton::ElementwiseInlineAsmOp op,
                         SmallVectorImpl<Operation *> *emitted = nullptr);

/// Fails where assembly reads what it may have overwritten, or writes to what
/// it may not. `copies` are those of the kernel before anything is lifted.
llvm::Error checkRegisters(triton::ElementwiseInlineAsmOp op,
                           const ptx::Copies &copies);

/// What follows "autodiff." in a comment that inline assembly consists of,
/// which marks values for differentiation; "" for all else.
StringRef getMarker(Operation *op);

} // namespace mlir::autodiff

#endif // AUTODIFF_ASSEMBLY_LIFT_H
