//===- Passes.h - From a primal kernel to its backward ----------*- C++ -*-===//
#ifndef AUTODIFF_TRANSFORMS_PASSES_H
#define AUTODIFF_TRANSFORMS_PASSES_H

#include "autodiff/Dialect/Autodiff.h"
#include "autodiff/Transforms/Needs.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

#define GEN_PASS_DECL
#include "autodiff/Transforms/Passes.h.inc"

} // namespace mlir::autodiff

#endif // AUTODIFF_TRANSFORMS_PASSES_H
