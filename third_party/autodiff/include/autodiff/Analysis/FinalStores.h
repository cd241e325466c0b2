//===- FinalStores.h - Stores that nothing overwrites -----------*- C++ -*-===//
#ifndef AUTODIFF_ANALYSIS_FINALSTORES_H
#define AUTODIFF_ANALYSIS_FINALSTORES_H

#include "autodiff/Analysis/AccessSpace.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::autodiff {

/// Where `stores` to an argument go, if a launch can check that no element is
/// stored to twice; `repeated` are the arguments for which that has failed.
ReasonOr<AccessSpace> findDistinct(ArrayRef<Operation *> stores,
                                   unsigned argument,
                                   ArrayRef<unsigned> repeated);

/// The writes of a kernel after which nothing else is written there.
class FinalStores {
public:
  /// Takes for granted what `findDistinct` lets a launch check.
  FinalStores(triton::FuncOp kernel, ArrayRef<unsigned> repeated);

  /// Whether what `write` leaves is there in the end, in all lanes of its mask.
  bool contains(Operation *write) const { return stores.contains(write); }

private:
  llvm::DenseSet<Operation *> stores;
};

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_FINALSTORES_H
