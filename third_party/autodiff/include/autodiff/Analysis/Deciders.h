//===- Deciders.h - What tells stored values apart --------------*- C++ -*-===//
//
// Several programs, or lanes, may store the same value to one address: a
// statistic of a row that each program of its columns computes, elements of
// tiles that overlap. Which numbers decide what is stored, a launch can
// compare.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_DECIDERS_H
#define AUTODIFF_ANALYSIS_DECIDERS_H

#include "autodiff/Analysis/LinearForm.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Sums of program numbers, lanes and iterations around `store`: wherever all
/// of these are the same, the same is stored. They are as few as can be seen,
/// parts of the sum that the address is where that is possible. None if other
/// things decide: memory that the kernel changes, what it does not compute
/// alone.
std::optional<llvm::SmallVector<LinearForm>>
findDeciders(triton::StoreOp store, triton::FuncOp kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_DECIDERS_H
