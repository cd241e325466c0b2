//===- PtxInstruction.h - Inline assembly of one instruction ----*- C++ -*-===//
#ifndef AUTODIFF_SUPPORT_PTXINSTRUCTION_H
#define AUTODIFF_SUPPORT_PTXINSTRUCTION_H

#include "triton/Dialect/Triton/IR/Dialect.h"
#include <optional>

namespace mlir::autodiff {

/// Inline assembly that is known to compute a function of its operands,
/// element by element: "tanh.approx.f32 $0, $1;".
struct PtxInstruction {
  enum class Rounding { Nearest, TowardZero, Down, Up, NearestAway };

  /// The function's plain name ("tanh").
  std::string function;
  /// Which operands of the assembly are the function's, in its order.
  SmallVector<unsigned> operands;

  // How exactly it is computed.
  std::string opcode;
  Rounding rounding = Rounding::Nearest;
  /// Subnormal operands and results become zero.
  bool flushes = false;
  /// "div.approx" and the like, which is not "div.full".
  bool isApproximate = false;
  /// Of a conversion to a type that TTIR has not: "tf32".
  std::string format;
};

/// Reads the assembly of `op`; nothing if it is anything but a single PTX
/// instruction on floats of the types that `op` has.
std::optional<PtxInstruction>
parsePtxInstruction(triton::ElementwiseInlineAsmOp op);

/// The same, of a text for a result and operands of these element types.
std::optional<PtxInstruction> parsePtxInstruction(StringRef text, Type result,
                                                  ArrayRef<Type> operands);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_PTXINSTRUCTION_H
