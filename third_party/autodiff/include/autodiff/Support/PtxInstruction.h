//===- PtxInstruction.h - Inline assembly of one instruction ----*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_PTXINSTRUCTION_H
#define AUTODIFF_SUPPORT_PTXINSTRUCTION_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include <optional>

namespace mlir::autodiff {

/// Inline assembly that is known to compute a function of its operands,
/// element by element: "tanh.approx.f32 $0, $1;".
struct PtxInstruction {
  /// The function's plain name ("tanh").
  std::string function;
  /// Which operands of the assembly are the function's, in its order.
  SmallVector<unsigned> operands;
};

/// Reads the assembly of `op`; nothing if it is anything but a single PTX
/// instruction on floats of the types that `op` has.
std::optional<PtxInstruction>
parsePtxInstruction(triton::ElementwiseInlineAsmOp op);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_PTXINSTRUCTION_H
