//===- PrintContributions.h - a pass that shows contributions ---*- C++ -*-===//
//
// Part of Triton-Autodiff, under the MIT licence.
//
//===----------------------------------------------------------------------===//

#ifndef BIN_PRINTCONTRIBUTIONS_H
#define BIN_PRINTCONTRIBUTIONS_H

namespace mlir::autodiff {

/// Registers `print-contributions`: remarks that say what passes can know of
/// what backward kernels add to gradients.
void registerPrintContributions();

} // namespace mlir::autodiff

#endif // BIN_PRINTCONTRIBUTIONS_H
