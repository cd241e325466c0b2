//===- Passes.h - What comes before printing as Python ----------*- C++ -*-===//
#ifndef AUTODIFF_SOURCE_PASSES_H
#define AUTODIFF_SOURCE_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Pass/Pass.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

#define GEN_PASS_DECL
#include "autodiff/Source/Passes.h.inc"

} // namespace mlir::autodiff

#endif // AUTODIFF_SOURCE_PASSES_H
