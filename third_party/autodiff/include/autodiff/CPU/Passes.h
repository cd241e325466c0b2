//===- Passes.h - Passes of the CPU backend ---------------------*- C++ -*-===//

#ifndef AUTODIFF_CPU_PASSES_H
#define AUTODIFF_CPU_PASSES_H

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/Pass.h"

namespace mlir::autodiff::cpu {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "autodiff/CPU/Passes.h.inc"

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_CPU_PASSES_H
