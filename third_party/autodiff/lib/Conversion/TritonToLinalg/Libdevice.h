//===- Libdevice.h - Functions of device libraries --------------*- C++ -*-===//

#ifndef AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_LIBDEVICE_H
#define AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_LIBDEVICE_H

#include "Lowering.h"

namespace mlir::autodiff::cpu {

/// The result of a device library's function for one element, or null if the
/// function is not known.
Value lowerLibdevice(Lowering &lowering, OpBuilder &b,
                     triton::ExternElementwiseOp op, ValueRange operands);

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_LIB_CONVERSION_TRITONTOLINALG_LIBDEVICE_H
