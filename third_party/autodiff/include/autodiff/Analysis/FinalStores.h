//===- FinalStores.h - Stores that nothing overwrites -----------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_FINALSTORES_H
#define AUTODIFF_ANALYSIS_FINALSTORES_H

#include "autodiff/Analysis/AccessSpace.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::autodiff {

/// The space of `stores` to an argument, if a launch can check that no element
/// is stored to twice. For the arguments `repeated` that check has failed, so
/// there is none.
ReasonOr<AccessSpace> findDistinct(ArrayRef<Operation *> stores,
                                   unsigned argument,
                                   ArrayRef<unsigned> repeated);

/// The writes whose values are in memory when the kernel ends, since nothing is
/// written over them.
class FinalStores {
public:
  /// Assumes what a launch checks, given `findDistinct`.
  FinalStores(triton::FuncOp kernel, ArrayRef<unsigned> repeated);

  /// Whether what `write` writes is still there when the kernel ends, in all
  /// lanes of its mask.
  bool contains(Operation *write) const { return stores.contains(write); }

private:
  llvm::DenseSet<Operation *> stores;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_FINALSTORES_H
