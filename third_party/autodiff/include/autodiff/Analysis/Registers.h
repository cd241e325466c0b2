//===- Registers.h - How much of tiles is live at a time --------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_REGISTERS_H
#define AUTODIFF_ANALYSIS_REGISTERS_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// How many registers of 32 bits a program needs for the floats of its tiles,
/// where most of them are live, with the operations in the order in which they
/// stand. Addresses and masks are made again from little; constants and what is
/// broadcast take no more than what they are made of.
double countRegisters(triton::FuncOp kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_REGISTERS_H
