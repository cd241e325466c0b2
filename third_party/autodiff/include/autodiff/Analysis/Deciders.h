//===- Deciders.h - What tells stored values apart --------------*- C++ -*-===//
//
// Several programs, or lanes, may store the same value to one address: each
// program of a row's columns computes a statistic of the row, or tiles overlap.
// A *decider* is a number that decides what is stored: where all deciders are
// equal, so are the values. A launch can compare them.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_DECIDERS_H
#define AUTODIFF_ANALYSIS_DECIDERS_H

#include "autodiff/Analysis/LinearForm.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// The deciders of `store`: sums of program numbers, lanes and iterations.
/// There are as few as the analysis finds, and they are terms of the address
/// where possible. None if something else decides as well: memory that the
/// kernel changes, or a value that it does not compute alone.
std::optional<llvm::SmallVector<LinearForm>>
findDeciders(triton::StoreOp store, triton::FuncOp kernel);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_DECIDERS_H
