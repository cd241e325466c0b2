//===- Libdevice.h - Functions of device libraries --------------*- C++ -*-===//

#ifndef AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_LIBDEVICE_H
#define AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_LIBDEVICE_H

#include "Lowering.h"

#include "autodiff/Support/PtxInstruction.h"

namespace mlir::autodiff::cpu {

/// The value of a mathematical function by plain name, of type `result`; null
/// if it is not known.
Value lowerFunction(Lowering &lowering, OpBuilder &b, Location loc,
                    StringRef name, Type result, ValueRange operands);

/// The same for an exact operation that rounds in a direction.
Value lowerRounded(Lowering &lowering, OpBuilder &b, Location loc,
                   StringRef name, PtxInstruction::Rounding rounding,
                   FloatType type, ValueRange operands);

/// The result of a device library's function for one element, or null if the
/// function is not known.
Value lowerLibdevice(Lowering &lowering, OpBuilder &b,
                     triton::ExternElementwiseOp op, ValueRange operands);

/// The result of inline assembly of one instruction, or null.
Value lowerInlineAsm(Lowering &lowering, OpBuilder &b,
                     triton::ElementwiseInlineAsmOp op, ValueRange operands);

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_LIBDEVICE_H
