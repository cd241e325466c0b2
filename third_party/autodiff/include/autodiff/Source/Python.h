//===- Python.h - TTIR as Triton Python -------------------------*- C++ -*-===//
#ifndef AUTODIFF_SOURCE_PYTHON_H
#define AUTODIFF_SOURCE_PYTHON_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::autodiff {

/// Prints the public kernels of a module as `triton.language`. Triton compiles
/// the text to the same PTX as it compiles the module to. An operation that
/// cannot be written in Python is an error that names it.
LogicalResult printPython(ModuleOp module, raw_ostream &os);

} // namespace mlir::autodiff

#endif // AUTODIFF_SOURCE_PYTHON_H
