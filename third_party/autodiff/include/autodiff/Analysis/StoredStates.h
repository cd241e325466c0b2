//===- StoredStates.h - What a loop stores of what it carries ---*- C++ -*-===//
//
// A recurrence often stores the value that its loop carries, its state, in
// every iteration, before or after the update. A backward can then load the
// state that an iteration started with from where this iteration, or the one
// before it, has stored it.
//
//===----------------------------------------------------------------------===//
#ifndef AUTODIFF_ANALYSIS_STOREDSTATES_H
#define AUTODIFF_ANALYSIS_STOREDSTATES_H

#include "autodiff/Dialect/Autodiff.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::autodiff {

/// Attribute of a store of a carried value that a backward may load. It has the
/// number of the carried value, and the check under which that is right.
constexpr llvm::StringLiteral kStateAttr = "autodiff.state";

/// A store, in the body of a loop, of a value that it carries.
struct StoredState {
  triton::StoreOp store;
  /// Whether it stores what the iteration starts with, not what it ends with.
  bool isBefore;
};

/// The stores of the carried value `index`, rounded or not.
SmallVector<StoredState> findStoredStates(scf::ForOp loop, unsigned index);

/// Marks the store so that a backward may load the carried value `index` from
/// there. One store may be marked for several values, each with its own check.
void markState(StoredState state, unsigned index, CheckAttr check);

/// Where a backward may read the carried value `index`; a null store if
/// nowhere.
StoredState findMarkedState(scf::ForOp loop, unsigned index);

/// The check of a marked store.
CheckAttr getStateCheck(StoredState state);

/// The operations in the body of `loop` that compute `pointer`, in order, if
/// they depend on nothing but the induction variable: they can be cloned for
/// another iteration. None otherwise.
std::optional<SmallVector<Operation *>> findPlace(scf::ForOp loop,
                                                  Value pointer);

} // namespace mlir::autodiff

#endif // AUTODIFF_ANALYSIS_STOREDSTATES_H
