//===- Passes.h - TTIR to linalg --------------------------------*- C++ -*-===//

#ifndef AUTODIFF_CONVERSION_TRITONTOLINALG_PASSES_H
#define AUTODIFF_CONVERSION_TRITONTOLINALG_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::autodiff::cpu {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "autodiff/Conversion/TritonToLinalg/Passes.h.inc"

} // namespace mlir::autodiff::cpu

#endif // AUTODIFF_CONVERSION_TRITONTOLINALG_PASSES_H
