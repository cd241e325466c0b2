//===- KernelName.h - What derived kernels are called -----------*- C++ -*-===//
#ifndef AUTODIFF_BUILDERS_KERNELNAME_H
#define AUTODIFF_BUILDERS_KERNELNAME_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Names a kernel; appends a number if another function of the module has the
/// name.
void nameKernel(triton::FuncOp kernel, const llvm::Twine &name);

} // namespace mlir::autodiff

#endif // AUTODIFF_BUILDERS_KERNELNAME_H
