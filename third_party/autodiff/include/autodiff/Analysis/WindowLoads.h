//===- WindowLoads.h - Loads of neighbouring elements -----------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_WINDOWLOADS_H
#define AUTODIFF_ANALYSIS_WINDOWLOADS_H

#include "autodiff/Analysis/LinearForm.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Whether another load of the kernel reads the same, earlier. `bounded` is an
/// index with a bound. What `load` reads in the `count` lanes behind the bound,
/// the other load reads in the `count` lanes in front of it: x[t − 3] in lanes
/// from T on is x[t] in lanes from T − 3 on.
bool isReadBefore(triton::LoadOp load, const LinearForm &bounded,
                  int64_t count);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_WINDOWLOADS_H
