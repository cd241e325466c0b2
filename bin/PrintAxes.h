//===- PrintAxes.h - a pass that shows axis maps ----------------*- C++ -*-===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#ifndef BIN_PRINTAXES_H
#define BIN_PRINTAXES_H

namespace mlir::triton {

/// Registers `print-axes`: remarks that say along which axes operations move
/// what they have of each operand.
void registerPrintAxes();

} // namespace mlir::triton

#endif // BIN_PRINTAXES_H
