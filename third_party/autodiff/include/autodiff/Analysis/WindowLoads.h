//===- WindowLoads.h - Loads of neighbouring elements -----------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_WINDOWLOADS_H
#define AUTODIFF_ANALYSIS_WINDOWLOADS_H

#include "autodiff/Analysis/LinearForm.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Whether what `load` reads in `count` lanes behind a bound of `bounded`,
/// another load of the kernel reads in as many lanes in front of it: x[t − 3]
/// in lanes from T on is x[t] in those from T − 3 on.
bool isReadBefore(triton::LoadOp load, const LinearForm &bounded,
                  int64_t count);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_WINDOWLOADS_H
