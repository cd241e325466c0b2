//===- Registers.h - How much of tiles is live at a time --------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_REGISTERS_H
#define AUTODIFF_ANALYSIS_REGISTERS_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// How many 32-bit registers the float tiles of a program need, where most of
/// them are live, with operations in their present order. Integers and masks do
/// not count, since they are cheap to compute again. A constant or a broadcast
/// takes only as much as its operand.
double countRegisters(triton::FuncOp kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_REGISTERS_H
