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
  /// Which operands of the assembly are the function's arguments, in its order.
  SmallVector<unsigned> operands;

  // The opcode as written, which says how exactly the function is computed.
  std::string opcode;
  Rounding rounding = Rounding::Nearest;
  /// Subnormal operands and results become zero.
  bool flushes = false;
  /// "div.approx" and the like; "div.full" does not count.
  bool isApproximate = false;
  /// For a conversion to a type that TTIR does not have: "tf32".
  std::string format;
};

/// Reads the assembly of `op`; none if it is anything but a single PTX
/// instruction on floats of the types that `op` has.
std::optional<PtxInstruction>
parsePtxInstruction(triton::ElementwiseInlineAsmOp op);

/// The same for a text, with a result and operands of these element types.
std::optional<PtxInstruction> parsePtxInstruction(StringRef text, Type result,
                                                  ArrayRef<Type> operands);

} // namespace mlir::autodiff

#endif // AUTODIFF_SUPPORT_PTXINSTRUCTION_H
